//! A repository of a gigabyte: how long it takes to fetch it, to hand it in and to take the work
//! back, and how much of it the program ever holds in memory.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::fake::model::{Answer, Model, Plan};
use crate::figure::Figure;
use crate::idle::megabytes;
use crate::memory::{Size, git, grow};
use crate::ready::{CLOCK, waited};
use crate::scale::Scale;
use crate::site::Site;
use crate::turns::file;

const LARGE: Size = Size {
    files: 250,
    file_bytes: 4_000_000,
    small_files: 2_000,
};

const SMALL: Size = Size {
    files: 2,
    file_bytes: 1_000_000,
    small_files: 20,
};

/// In the short extent it is a small one: a large one fills the disk with five gigabytes for a
/// while.
pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let replies = AtomicUsize::new(0);
    let model = Model::answering(move |_| match replies.fetch_add(1, Ordering::Relaxed) {
        0 => Answer::plans(Plan::of(&["write a note"]).in_environment("python")),
        1 => Answer::calls("workspace/execute_command", json!({ "command": CLOCK })),
        2 => Answer::calls("workspace/write_file", file("A line.\n")),
        _ => Answer::done("The note is written."),
    })
    .await;
    let site = Site::new(&model).await?;
    grow(&site, &scale.of(LARGE, SMALL))?;
    site.github.open_issue("Write a note").label("coding agent");
    let ran = site.deliver().await?;
    let ended = Instant::now();
    let exchanges = model.exchanges();
    let (Some(first), Some(last)) = (exchanges.first(), exchanges.last()) else {
        anyhow::bail!("the model was not asked");
    };
    let handed_in = waited(&exchanges, &model.requests())?;
    let cloned = clone(&site)?;
    let seconds = |from: Instant, to: Instant| (to - from).as_secs_f64();
    Ok(vec![
        Figure::of(
            "a repository of 1 GB, fetched and planned on",
            "s",
            &[seconds(ran.started, first.arrived)],
        )?,
        Figure::of("a repository of 1 GB, handed in", "s", &[handed_in.as_secs_f64()])?.over(&[cloned.as_secs_f64()]),
        Figure::of(
            "a repository of 1 GB, taken back and delivered",
            "s",
            &[seconds(last.answered, ended)],
        )?,
        Figure::of("a repository of 1 GB, peak memory", "MB", &[megabytes(ran.peak_bytes)])?.at_most(100.0),
    ])
}

/// Does by hand what handing in consists of, on this machine and without a container: a pack is
/// written, read and checked out.
fn clone(site: &Site) -> anyhow::Result<Duration> {
    let (copy, bare) = (site.folder().join("copy"), site.github.default_repository());
    let (from, to) = (
        format!("file://{}", bare.git().path().display()),
        copy.to_string_lossy(),
    );
    let begun = Instant::now();
    git(site.folder(), &["clone", "-q", &from, &to])?;
    Ok(begun.elapsed())
}
