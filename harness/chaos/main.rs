//! Runs tasks while things go wrong, and looks whether anything was lost or done twice. `make
//! chaos` runs it.
//!
//! The real program runs as a process of its own between the fakes of the tests, with the real
//! Docker engine. It is ended with KILL at the boundaries of its steps and at random moments, or
//! the world around it breaks in one of several ways; it is started again until the task is
//! finished, and then everything is counted. Every choice comes from the seed, which is printed;
//! what the machine does between two of them does not.
//!
//! `make chaos ROUNDS=12 SEED=7 ONLY="kill clock:3"` plays the rounds with KILL and the
//! third jump of the clock; `SOAK=100` works on a hundred tasks in one long-running program
//! instead, with `KILLS=0` in one process, and `CLUSTER=3` on as many tasks as ROUNDS on three
//! machines with one store.

mod model; // what the model does with a task
mod proxy; // a Docker socket that can go away
mod disk; // a small disk that can be filled
mod clock; // a clock that can be set
mod site; // the program, configured for the fakes
mod job; // one task, on either forge
mod store; // the program's store, as seen from outside
mod fault; // what goes wrong, and when
mod class; // which rounds are played
mod judge; // what must be so afterwards
mod round; // one task from its label to its end
mod report; // the table and the file
mod soak; // many tasks in one long-running program
mod cluster; // many tasks on several machines

use std::process::ExitCode;
use std::str::FromStr;

use anyhow::Context;
use class::Class;
use coding_agent_harness::exit_code;
use coding_agent_harness::fake; // forges and model
use futures_util::StreamExt;
use round::Outcome;

/// Each world has a container of its own, and waits most of the time.
const SIDE_BY_SIDE: usize = 2;

fn main() -> ExitCode {
    exit_code("chaos", chaos(), "rounds ended as they must not")
}

fn chaos() -> anyhow::Result<usize> {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let rounds = variable("ROUNDS")?.unwrap_or(200);
    let seed = match variable("SEED")? {
        Some(seed) => seed,
        None => fastrand::u64(1..1_000_000),
    };
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Runtime::new()?;
    if let Some(tasks) = variable("SOAK")? {
        let killed = variable("KILLS")?.unwrap_or(1_u8) != 0;
        println!("soak: SEED={seed} SOAK={tasks} KILLS={}", u8::from(killed));
        return runtime.block_on(soak::soak(tasks, seed, killed));
    }
    println!("chaos: SEED={seed} ROUNDS={rounds}");
    if let Some(machines) = variable("CLUSTER")? {
        return runtime.block_on(cluster::cluster(machines, rounds, seed));
    }
    let plans = class::plans(rounds, seed, &wanted)?;
    let count = plans.len();
    let outcomes = runtime.block_on(async {
        let playing = futures_util::stream::iter(plans).map(round::play);
        let mut playing = playing.buffer_unordered(SIDE_BY_SIDE);
        let mut outcomes: Vec<(Class, Outcome)> = Vec::new();
        while let Some((class, outcome)) = playing.next().await {
            eprintln!("chaos: {}/{count} {}", outcomes.len() + 1, outcome.line);
            outcomes.push((class, outcome));
        }
        outcomes
    });
    report::show(rounds, seed, &outcomes)
}

/// Returns the number in an environment variable.
fn variable<T: FromStr>(name: &str) -> anyhow::Result<Option<T>>
where
    T::Err: std::error::Error + Send + Sync + 'static,
{
    match std::env::var(name) {
        Ok(text) if !text.is_empty() => Ok(Some(
            text.parse().with_context(|| format!("{name}={text} is no number"))?,
        )),
        _ => Ok(None),
    }
}
