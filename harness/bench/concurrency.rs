//! Many runs at once in one service, while the model thinks for two seconds before each reply.
//!
//! Only the steady state is measured: from the moment when each run has its container and has had a
//! turn, for a while in which none of them ends. Until then those that are ready go on turning.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::json;
use tokio::time::sleep;

use crate::economy::count;
use crate::fake::model::{Answer, Model, Plan, Request};
use crate::figure::Figure;
use crate::floor::COMMAND;
use crate::idle::megabytes;
use crate::process::{own_now, processor_now};
use crate::scale::Scale;
use crate::site::{LOOK_AGAIN, Site, until};
use crate::turns::{file, milliseconds};
use crate::web::Crowded;

/// How many at once, with the names of what is measured of them.
struct Crowd {
    size: usize,
    rate: &'static str,
    turn: &'static str,
    processor: &'static str,
    memory: &'static str,
}

const CROWDS: [Crowd; 4] = [
    Crowd {
        size: 1,
        rate: "1 run at once, turns per second",
        turn: "1 run at once, a turn of each",
        processor: "1 run at once, processor for a turn",
        memory: "1 run at once, memory of its own",
    },
    Crowd {
        size: 8,
        rate: "8 runs at once, turns per second",
        turn: "8 runs at once, a turn of each",
        processor: "8 runs at once, processor for a turn",
        memory: "8 runs at once, memory of each more",
    },
    Crowd {
        size: 32,
        rate: "32 runs at once, turns per second",
        turn: "32 runs at once, a turn of each",
        processor: "32 runs at once, processor for a turn",
        memory: "32 runs at once, memory of each more",
    },
    Crowd {
        size: 64,
        rate: "64 runs at once, turns per second",
        turn: "64 runs at once, a turn of each",
        processor: "64 runs at once, processor for a turn",
        memory: "64 runs at once, memory of each more",
    },
];
const THINKING: Duration = Duration::from_secs(2);
/// How long the steady state is watched.
const WATCHED: Duration = Duration::from_secs(30);

/// The requests that the model has seen, by task.
#[derive(Default)]
struct Seen {
    /// The requests of each task.
    requests: HashMap<String, Vec<Instant>>,
    is_over: bool,
}

/// The measurements of some runs at once.
pub struct Steady {
    /// Milliseconds from one request of a run to its next, of all runs.
    pub turns: Vec<f64>,
    pub processor: Duration,
    pub memory: u64,
}

pub async fn measure(scale: Scale) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::new();
    let mut alone: Option<Steady> = None;
    for crowd in CROWDS.iter().take(scale.of(CROWDS.len(), 2)) {
        let size = crowd.size;
        let steady = together(size, scale.of(WATCHED, Duration::from_secs(5)), None)
            .await
            .with_context(|| format!("{size} runs at once"))?;
        let first = alone.as_ref().unwrap_or(&steady);
        let memory = if size == 1 {
            Figure::of(crowd.memory, "MB", &[megabytes(steady.memory)])?
        } else {
            let more = megabytes(steady.memory) - megabytes(first.memory);
            Figure::of(crowd.memory, "MB", &[more / count(size - 1)])?.at_most(1.0)
        };
        let mean = steady.turns.iter().sum::<f64>() / count(steady.turns.len());
        figures.extend([
            Figure::of(crowd.rate, "", &[count(size) * 1e3 / mean])?.over(&[count(size) / THINKING.as_secs_f64()]),
            Figure::of(crowd.turn, "ms", &steady.turns)?
                .over(&vec![milliseconds(THINKING); steady.turns.len()])
                .at_most_times(1.1),
            Figure::of(crowd.processor, "ms", &[milliseconds(steady.processor)])?
                .over(&[milliseconds(first.processor)])
                .at_most_times(1.2),
            memory,
        ]);
        alone.get_or_insert(steady);
    }
    Ok(figures)
}

/// Has this many runs turn at once for so long, and deliver. With a crowd of readers, the program
/// has one, and the crowd reads meanwhile.
pub async fn together(runs: usize, watched: Duration, crowd: Option<&Crowded>) -> anyhow::Result<Steady> {
    let seen = Arc::new(Mutex::new(Seen::default()));
    let model = Model::answering({
        let seen = Arc::clone(&seen);
        move |request| answer(&mut seen.lock().unwrap_or_else(PoisonError::into_inner), request).thinking(THINKING)
    })
    .await;
    let site = Site::new(&model).await?.configured(|config| {
        config["consumers"] = json!(runs);
        config["max_llm_process_num"] = json!(1_000);
        if let Some(crowd) = crowd {
            crowd.web.configure(config);
        }
    })?;
    for number in 0..runs {
        site.github.open_issue(&title(number)).label("coding agent");
    }
    let service = site.serve()?;
    let process = service.process();
    let begun = Instant::now();
    until("every run has had a turn", || {
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        // The plan, the file, and a first command.
        seen.requests.len() == runs && seen.requests.values().all(|requests| requests.len() > 3)
    })
    .await?;
    let started = begun.elapsed();
    let readers = match crowd {
        Some(crowd) => Some(crowd.come().await?),
        None => None,
    };
    let (begun, used) = (Instant::now(), processor_now(process)?);
    let mut memory = Vec::new();
    while begun.elapsed() < watched {
        sleep(LOOK_AGAIN).await;
        memory.push(own_now(process)?);
    }
    let used = processor_now(process)?
        .checked_sub(used)
        .context("time went backwards")?;
    let turns = {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.is_over = true;
        turns_since(begun, &seen)
    };
    anyhow::ensure!(!turns.is_empty(), "no turn was made in {watched:?}");
    if let Some((crowd, readers)) = crowd.zip(readers) {
        crowd.leave(readers).await?;
    }
    memory.sort_unstable();
    let steady = Steady {
        processor: used / u32::try_from(turns.len())?,
        turns,
        memory: memory[memory.len() / 2],
    };
    let begun = Instant::now();
    until("every run has delivered", || site.github.pulls().len() == runs).await?;
    eprintln!(
        "bench:   {runs} at once: all were at work after {:.1} s, all had delivered {:.1} s after the end; memory {:.1} MB",
        started.as_secs_f64(),
        begun.elapsed().as_secs_f64(),
        megabytes(steady.memory),
    );
    // The last containers are removed after the pull request.
    service.stop().await?;
    Ok(steady)
}

/// Returns the turns that ended after `begun`, in milliseconds.
fn turns_since(begun: Instant, seen: &Seen) -> Vec<f64> {
    let turns = seen.requests.values().flat_map(|requests| requests.windows(2));
    turns
        .filter(|turn| turn[1] > begun)
        .map(|turn| milliseconds(turn[1] - turn[0]))
        .collect()
}

fn title(number: usize) -> String {
    format!("Stand still, number {number:03}")
}

/// Plans, changes a file, runs the command again and again until it is over, and ends.
fn answer(seen: &mut Seen, request: &Request) -> Answer {
    let begin = request.first_user_message();
    let task = begin
        .split_once("Stand still, number ")
        .and_then(|(_, rest)| rest.get(..3))
        .unwrap_or_default();
    let requests = seen.requests.entry(task.to_owned()).or_default();
    requests.push(Instant::now());
    match requests.len() {
        1 => Answer::plans(Plan::of(&["stand still"]).in_environment("python")),
        2 => Answer::calls("workspace/write_file", file("A line.\n")),
        _ if seen.is_over => Answer::done("Stood still."),
        turn => Answer::calls(
            "workspace/execute_command",
            json!({ "command": format!("{COMMAND} {turn}") }),
        ),
    }
}
