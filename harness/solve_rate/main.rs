//! How many tasks are solved with a model that you have: from the label to the pull request, beside
//! the same model asked once and beside mini-swe-agent. `make solve-rate` runs it with the model
//! that the environment names; docs/solve-rate.md tells what is measured and how.
//!
//! Each task has hidden tests, which alone decide. What was measured is kept by model and setting,
//! so that a measurement that was broken off goes on, and a round can be held against the one
//! before.
#![cfg_attr(test, allow(clippy::unwrap_used, reason = "a test stops where something is wrong"))]

mod setting; // the conditions of a measurement
mod task; // the tasks
mod borrowed; // tasks that others wrote, by path
mod choice; // which of them are measured
mod bench; // where tests are run
mod server; // the model
mod outcome; // what came of a task
mod book; // the outcomes so far
mod workers; // the program, the model alone and mini-swe-agent
mod measure; // each task with each worker
mod report; // the tables
#[cfg(test)]
mod proofs; // the tasks are what they should be

use std::process::ExitCode;
use std::time::Instant;

use coding_agent_harness::peer::Peer;
use coding_agent_harness::{build, fake, run};

use book::Book;
use measure::{Ended, Measurement};
use report::Report;
use server::Server;
use setting::{Anew, Wanted, said};

fn main() -> ExitCode {
    let names = std::env::args().skip(1).collect();
    run("solve-rate", measure(names), "tasks were said to be done and are not")
}

/// Works on all tasks that are not in the book yet, prints the report, and returns the number of
/// dishonest ends.
async fn measure(names: Vec<String>) -> anyhow::Result<usize> {
    let begun = Instant::now();
    let wanted = Wanted::of_environment(names)?;
    let tasks = choice::of(&wanted)?;
    if said("PROVE").is_some() {
        measure::prove(&tasks).await?;
        return Ok(0);
    }
    let model = server::name()?;
    let mut book = Book::open(&build::results("solve-rate")?, &model)?;
    if let Some((one, other)) = &wanted.compare {
        report::comparison::of_two(&book, &tasks, (one, other), wanted.setting.limits)?;
        return Ok(0);
    }
    let server = Server::of_environment(&wanted.setting).await?;
    // Nothing is taken out yet.
    server.ensure_there(Anew::Nothing).await?;
    let peer = if wanted.is_with_peer { Peer::installed()? } else { None };
    if wanted.is_with_peer && peer.is_none() {
        eprintln!("solve-rate: mini-swe-agent is left out (`scripts/setup peer` installs it)");
    }
    let until = wanted.size.time().map(|time| begun + time);
    let mut measurement = Measurement::new(&server, peer.as_ref(), &wanted.setting, until);
    measurement.forget(&tasks, wanted.anew, &mut book)?;
    let Ended { left_out, not_measured } = measurement.take(&tasks, &mut book).await?;
    let names = tasks.iter().map(|task| task.name.as_str());
    let report = Report {
        model: &model,
        setting: &wanted.setting,
        tasks: names
            .filter(|name| !left_out.iter().any(|other| other == name))
            .collect(),
        workers: measurement.workers(),
        anew: wanted.anew,
        not_measured,
    };
    report.show(&book)
}
