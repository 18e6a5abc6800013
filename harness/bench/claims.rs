//! Measures how long eight workers at once take to claim runs, and how often a worker without work
//! asks the store: in the file, and on a PostgreSQL of the measurement's own.

use std::time::{Duration, Instant};

use coding_agent::store::{Address, Server, Store};
use coding_agent::task::id::TaskId;
use coding_agent::task::state::State;
use coding_agent_harness::postgres::Postgres;
use serde_json::Value;

use crate::fake::model::{Answer, Model};
use crate::figure::Figure;
use crate::scale::Scale;
use crate::site::{Site, until};
use crate::turns::milliseconds;

const WORKERS: usize = 8;
/// The duration of a lease, longer than any claim of the measurement.
const TTL: Duration = Duration::from_mins(1);

pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let runs = scale.of(1_000, 80);
    let folder = tempfile::tempdir()?;
    let in_file = claims(&Address::Folder(folder.path().to_owned()), runs).await?;
    let Some(database) = Postgres::start()? else {
        eprintln!("bench: PostgreSQL is missing (scripts/setup test-postgres); claims are measured in the file alone");
        return Ok(vec![Figure::of("a claim by 8 workers, in the file", "ms", &in_file)?]);
    };
    let on_server = claims(&Address::Server(Server::new(&database.address, None)), runs).await?;
    let slowest = Figure::of("a claim by 8 workers, on PostgreSQL", "ms", &on_server)?;
    let p95 = slowest.p95;
    let asked = idle(&database, scale).await?;
    Ok(vec![
        Figure::of("a claim by 8 workers, in the file", "ms", &in_file)?,
        slowest,
        Figure::of("a claim by 8 workers, on PostgreSQL, p95", "ms", &[p95])?.at_most(20.0),
        Figure::of("an idle worker, transactions a second", "", &[asked])?.at_most(1.0),
    ])
}

/// Has eight workers claim and end that many runs; returns how long each claim took. Fails unless
/// each run was claimed once.
async fn claims(address: &Address, runs: usize) -> anyhow::Result<Vec<f64>> {
    let store = Store::open(address.clone()).await?;
    for number in 0..runs {
        let task: TaskId = format!("github:acme/widgets#{}", number + 1).parse()?;
        store.admit(&task, "Greet", &Value::Null).await?;
    }
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..WORKERS {
        let store = Store::open(address.clone()).await?;
        workers.spawn(async move {
            let mut claimed = Vec::new();
            loop {
                let begun = Instant::now();
                let Some((lease, run)) = store.claim(TTL).await? else {
                    return Ok::<_, anyhow::Error>(claimed);
                };
                claimed.push((run.id, begun.elapsed()));
                store.save(&lease, State::Done, &Value::Null).await?;
            }
        });
    }
    let mut claimed = Vec::new();
    for worker in workers.join_all().await {
        claimed.extend(worker?);
    }
    let times = claimed.iter().map(|(_, time)| milliseconds(*time)).collect();
    let mut once: Vec<_> = claimed.into_iter().map(|(run, _)| run).collect();
    once.sort();
    once.dedup();
    anyhow::ensure!(once.len() == runs, "{} of {runs} runs were claimed", once.len());
    Ok(times)
}

/// Returns how many transactions a second a service asks the database for that finds no work.
async fn idle(database: &Postgres, scale: Scale) -> anyhow::Result<f64> {
    let seconds: u64 = scale.of(120, 10);
    let model = Model::answering(|_| Answer::done("Nobody asks.")).await;
    let url = format!("{}&options=-csearch_path%3Didle", database.address);
    database.ask("CREATE SCHEMA idle")?;
    let site = Site::new(&model).await?.configured(|config| {
        config["store"] = serde_json::json!({ "url": url });
    })?;
    let service = site.serve()?;
    let has_looked = || site.github.requests().len() > 2;
    until("the service has looked for work", has_looked).await?;
    let count = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()";
    let before: f64 = database.ask(count)?.parse()?;
    let begun = Instant::now();
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let after: f64 = database.ask(count)?.parse()?;
    let time = begun.elapsed().as_secs_f64();
    service.stop().await?;
    // One of them was the question before.
    Ok(((after - before - 1.0) / time).max(0.0))
}
