//! The cost of finished runs for the next: `coding-agent run` with nothing to do, on a store that
//! holds many of them, against one that holds a single one. Both are asked in turns, so that a busy
//! machine slows both.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};

use crate::economy::count;
use crate::fake::model::{Answer, Model, Plan};
use crate::figure::Figure;
use crate::idle::megabytes;
use crate::process::{Used, used};
use crate::scale::Scale;
use crate::site::Site;
use crate::turns::{file, milliseconds};
use crate::web;

const FINISHED: usize = 100_000;
const ROUNDS: usize = 20;
/// The number of the model's replies in one run.
const REPLIES: usize = 3;

/// Copies the only run there is, its conversation and the pull request it opened, `$1` times under
/// ids that are older than its own.
const COPIES: [&str; 3] = [
    "INSERT INTO runs (id, task, title, state, record, created_at, updated_at, finished_at)
     SELECT printf('00000000-0000-7000-8000-%012x', number), 'github:acme/widgets#' || (number + 1000), title, state, record,
         created_at, updated_at, finished_at
     FROM runs, counted",
    "INSERT INTO messages (run, position, message)
     SELECT printf('00000000-0000-7000-8000-%012x', number), position, message FROM messages, counted",
    "INSERT INTO followed (task, origin, notes, active_at, ended_at)
     SELECT 'github:acme/widgets#' || (number + 1000000), 'github:acme/widgets#' || (number + 1000), notes, active_at, active_at
     FROM followed, counted",
];

pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let (copies, rounds) = (scale.of(FINISHED, 1_000), scale.of(ROUNDS, 2));
    let model = Model::answering({
        let replies = AtomicUsize::new(0);
        move |_| match replies.fetch_add(1, Ordering::Relaxed) % REPLIES {
            0 => Answer::plans(Plan::of(&["write a note"]).in_environment("python")),
            1 => Answer::calls("workspace/write_file", file("A line.\n")),
            _ => Answer::done("The note is written."),
        }
    })
    .await;
    let (fresh, old) = (Site::new(&model).await?, Site::new(&model).await?);
    for site in [&fresh, &old] {
        site.github.open_issue("Write a note").label("coding agent");
        site.deliver().await?;
    }
    let size = copy(old.folder(), copies).await?;
    eprintln!("bench:   {copies} finished runs are {:.0} MB", megabytes(size));
    let (with_few, with_many) = (fresh.command(&["run"])?, old.command(&["run"])?);
    let (mut few, mut many) = (Vec::new(), Vec::new());
    // The first one of each finds its files cold, and the store's log still full of what was
    // copied.
    for round in 0..=rounds {
        let (one, other) = (used(&with_few)?, used(&with_many)?);
        if round > 0 {
            few.push(one);
            many.push(other);
        }
    }
    let time = |of: fn(&Used) -> Duration| -> (Vec<f64>, Vec<f64>) {
        let milliseconds = |all: &[Used]| all.iter().map(|used| milliseconds(of(used))).collect();
        (milliseconds(&many), milliseconds(&few))
    };
    let (processor, processor_few) = time(|used| used.processor);
    let (wall, wall_few) = time(|used| used.wall);
    let peak: Vec<f64> = many.iter().map(|used| megabytes(used.peak_bytes)).collect();
    let peak_few: Vec<f64> = few.iter().map(|used| megabytes(used.peak_bytes)).collect();
    let mut pages = web::history(&old, rounds).await?;
    // The times that a person sees of it.
    old.github.open_issue("Write another note").label("coding agent");
    fresh.github.open_issue("Write another note").label("coding agent");
    let (delivered, delivered_few) = (delivered(&old).await?, delivered(&fresh).await?);
    let mut figures = vec![
        Figure::of("finished runs in the store", "", &[count(copies)])?,
        Figure::of("an idle run behind finished runs, processor", "ms", &processor)?
            .over(&processor_few)
            .at_most_times(1.1),
        Figure::of("an idle run behind finished runs, wall clock", "ms", &wall)?
            .over(&wall_few)
            .at_most_times(1.1),
        Figure::of("an idle run behind finished runs, peak memory", "MB", &peak)?
            .over(&peak_few)
            .at_most_times(1.1),
        Figure::of(
            "a small run behind finished runs, wall clock",
            "ms",
            &[milliseconds(delivered)],
        )?
        .over(&[milliseconds(delivered_few)]),
    ];
    figures.append(&mut pages);
    Ok(figures)
}

/// Returns how long the run of one more item takes.
async fn delivered(site: &Site) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    site.deliver().await?;
    Ok(begun.elapsed())
}

/// Returns how large the store is then.
async fn copy(folder: &Path, copies: usize) -> anyhow::Result<u64> {
    let path = folder.join("state/coding-agent.db");
    let mut store: SqliteConnection = SqliteConnectOptions::new().filename(&path).connect().await?;
    for copy in COPIES {
        let query = format!(
            "WITH RECURSIVE counted (number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM counted WHERE number < {copies}) {copy}"
        );
        // The parts are written above, and the number is one.
        sqlx::query(sqlx::AssertSqlSafe(query)).execute(&mut store).await?;
    }
    store.close().await?;
    Ok(std::fs::metadata(path)?.len())
}
