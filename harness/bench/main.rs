//! Measures what the program itself costs: its time for a turn, its memory, its requests. `make
//! bench` runs it.
//!
//! The real program runs as a process of its own between the fakes of the tests, with the real
//! Docker engine, and a model that answers at once. Every time is a ratio as well: to a floor that
//! is measured between the program's own turns, so that a busy machine slows both. A measurement
//! that cannot be made fails the bench; a slow one never does.
//!
//! `make bench ONLY="idle turns"` makes only the measurements with these names.

mod figure; // one measured thing, with its target
mod scale; // how much is measured
mod picture; // figures to be looked at
mod report; // the table and the files
mod process; // what a process has used
mod site; // the program, configured for the fakes
mod floor; // the least a turn can cost
mod baton; // two conversations that take turns
mod peer; // runs of mini-swe-agent
mod sent; // what a conversation sends

// The measurements.
mod against;
mod claims;
mod concurrency;
mod conversation;
mod economy;
mod finished;
mod idle;
mod looking;
mod memory;
mod polls;
mod prompts;
mod ready;
mod repository;
mod rest;
mod turns;
mod web;

use std::process::ExitCode;

use anyhow::Context;
use coding_agent_harness::fake; // forges and model
use figure::Figure;
use scale::Scale;

const NAMES: [&str; 16] = [
    "turns",
    "peer",
    "ready",
    "idle",
    "rest",
    "economy",
    "polls",
    "prompts",
    "looking",
    "claims",
    "concurrency",
    "finished",
    "conversation",
    "memory",
    "repository",
    "web",
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some((process::METER, command)) = arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        return process::meter(command);
    }
    match bench(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn bench(wanted: &[String]) -> anyhow::Result<()> {
    if let Some(unknown) = wanted.iter().find(|name| !NAMES.contains(&name.as_str())) {
        anyhow::bail!("there is no measurement '{unknown}'; there are: {}", NAMES.join(", "));
    }
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let runtime = tokio::runtime::Runtime::new()?;
    // Said by make, as the other programs of the workshop are told theirs.
    let scale = match std::env::var("SHORT") {
        Ok(said) if !said.is_empty() => Scale::Short,
        _ => Scale::Full,
    };
    let mut figures = Vec::new();
    for name in NAMES {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            eprintln!("bench: {name} ...");
            let measured = runtime.block_on(measure(name, scale));
            figures.extend(measured.with_context(|| format!("the measurement '{name}' is broken"))?);
        }
    }
    report::show(&figures, scale)
}

async fn measure(name: &str, scale: Scale) -> anyhow::Result<Vec<Figure>> {
    match name {
        "peer" => against::measure(scale).await,
        "turns" => Box::pin(turns::measure(scale)).await,
        "idle" => idle::measure(scale).await,
        "economy" => economy::measure().await,
        "ready" => ready::measure(scale).await,
        "rest" => rest::measure(scale).await,
        "polls" => polls::measure(scale).await,
        "prompts" => prompts::measure().await,
        "looking" => looking::measure().await,
        "claims" => claims::measure(scale).await,
        "concurrency" => concurrency::measure(scale).await,
        "finished" => finished::measure(scale).await,
        "conversation" => conversation::measure(scale).await,
        "repository" => repository::measure(scale).await,
        "web" => web::measure(scale).await,
        _ => memory::measure(scale).await,
    }
}
