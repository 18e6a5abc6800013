//! How many tasks are solved with a model that you have: from the label to the pull request, beside
//! the same model asked once and beside mini-swe-agent. `make solve-rate` runs it with the model
//! that the environment names; docs/solve-rate.md tells what is measured and how.
//!
//! Each task has hidden tests, which alone decide. What was measured is kept by model, so that a
//! measurement that was broken off goes on; `ANEW=1` begins again.
#![allow(
    clippy::allow_attributes,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    unreachable_pub,
    reason = "make tells it by variables what to do, it talks to the terminal and exports \
              nothing"
)]
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test stops where something is wrong"))]

mod figures; // shares, and what is due to chance
mod task; // the tasks
mod borrowed; // tasks that others wrote, by path
mod bench; // where tests are run
mod server; // the model
mod outcome; // what came of a task, and the book of it
mod program; // the program works
mod floor; // the model alone works
mod peer; // mini-swe-agent works
mod report; // the table
#[cfg(test)]
mod proofs; // the tasks are what they should be

use std::collections::HashMap;
use std::process::ExitCode;
use std::time::Instant;

use coding_agent_harness::{build, exit_code, fake};

use bench::Bench;
use outcome::{Book, Outcome, Worker};
use peer::Peer;
use program::Limits;
use server::Server;
use task::{Language, Task};

/// The limits of a task; in the short form a task of three workers must fit into some minutes.
const USUAL: Limits = Limits { turns: 25, minutes: 20 };
const SHORT: Limits = Limits { turns: 10, minutes: 2 };

fn main() -> ExitCode {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let outcome = tokio::runtime::Runtime::new()
        .map_err(anyhow::Error::from)
        .and_then(|runtime| runtime.block_on(measure(&wanted)));
    exit_code("solve-rate", outcome, "tasks were said to be done and are not")
}

/// Tells whether a variable is set to something.
fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|said| !said.is_empty())
}

/// Returns the tasks that the variables ask for.
fn tasks(wanted: &[String]) -> anyhow::Result<Vec<Task>> {
    let mut tasks = task::shipped()?;
    if let Some(borrowed) = borrowed::of_environment()? {
        tasks = borrowed;
    }
    if let Ok(half) = std::env::var("HALF")
        && !half.is_empty()
    {
        anyhow::ensure!(["a", "b"].contains(&half.as_str()), "HALF is a or b, not {half}");
        tasks.retain(|task| half_of(&task.name) == half);
    }
    if !wanted.is_empty() {
        tasks.retain(|task| wanted.iter().any(|word| task.name.contains(word.as_str())));
        return Ok(tasks);
    }
    let count = match (is_set("SHORT"), is_set("FULL")) {
        (true, _) => 8,
        (false, true) => tasks.len(),
        (false, false) => 20,
    };
    Ok(task::chosen(tasks, count))
}

/// Returns the half of the tasks that this one belongs to: what was changed by looking at one half
/// is confirmed on the other.
fn half_of(name: &str) -> &'static str {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(name.as_bytes());
    if digest[0].is_multiple_of(2) { "a" } else { "b" }
}

/// Works on all tasks that are not in the book yet, prints the report, and returns the number of
/// dishonest ends.
async fn measure(wanted: &[String]) -> anyhow::Result<usize> {
    let tasks = tasks(wanted)?;
    anyhow::ensure!(!tasks.is_empty(), "there is no such task");
    let server = Server::of_environment().await?;
    let mut book = Book::open(&build::results("solve-rate")?, &server.model, is_set("ANEW"))?;
    let peer = if is_set("WITHOUT_PEER") {
        None
    } else {
        Peer::installed()?
    };
    if peer.is_none() {
        eprintln!("solve-rate: mini-swe-agent is left out (`scripts/setup peer` installs it)");
    }
    let mut benches: HashMap<Language, Bench> = HashMap::new();
    let measured = measure_all(&tasks, &server, peer.as_ref(), &mut book, &mut benches).await;
    for bench in benches.into_values() {
        bench.end().await?;
    }
    measured?;
    let of_these: Vec<Outcome> = book
        .outcomes
        .iter()
        .filter(|outcome| tasks.iter().any(|task| task.name == outcome.task))
        .cloned()
        .collect();
    report::show(&server.model, &of_these)
}

async fn measure_all(
    tasks: &[Task],
    server: &Server,
    peer: Option<&Peer>,
    book: &mut Book,
    benches: &mut HashMap<Language, Bench>,
) -> anyhow::Result<()> {
    let limits = if is_set("SHORT") { SHORT } else { USUAL };
    let workers = [Some(Worker::Program), Some(Worker::Floor), peer.map(|_| Worker::Peer)];
    for task in tasks {
        for worker in workers.into_iter().flatten() {
            if book.has(&task.name, worker) {
                continue;
            }
            let bench = match benches.entry(task.language) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => entry.insert(Bench::start(task.language).await?),
            };
            if worker == Worker::Program && task.is_borrowed() {
                let before = bench
                    .test(&task.with(&[&task.hidden]), task.language.hidden_command())
                    .await?;
                if before.passed {
                    println!("{}: left out, since its tests do not notice the fault", task.name);
                    break;
                }
            }
            let begun = Instant::now();
            let outcome = match (worker, peer) {
                (Worker::Floor, _) => floor::work(server, bench, task).await?,
                (Worker::Peer, Some(peer)) => peer.work(server, bench, task, limits).await?,
                _ => program::work(server, bench, task, limits).await?,
            };
            let solved = if outcome.solved { "solved" } else { "not solved" };
            println!(
                "{}, {worker:?}: {solved}, {:?}, {} turns, {:.0} s",
                task.name,
                outcome.end,
                outcome.turns,
                begun.elapsed().as_secs_f64()
            );
            book.add(outcome)?;
        }
    }
    Ok(())
}
