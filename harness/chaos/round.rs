//! One task from its label to its end, with what goes wrong in between.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent::plain::counted;

use crate::class::{Class, Plan};
use crate::fault::Fault;
use crate::job::Job;
use crate::judge;
use crate::site::{Gate, Site};
use crate::store::Store;

/// The longest time until the program ends by itself.
const PATIENCE: Duration = Duration::from_mins(4);

/// How often the program is started at most.
const MOST_STARTS: usize = 14;

/// How slowly the model answers where somebody has to say something in between.
const THINKING: u64 = 700;

/// How a round went.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The round in one line, for people.
    pub line: String,
    pub starts: usize,
    pub kills: usize,
    /// The number of faults that struck besides KILL.
    pub faults: usize,
    /// The number of faults that would have struck after the end of the task.
    pub missed: usize,
    pub wrong: Vec<String>,
    pub folder: Option<PathBuf>,
    pub took: Duration,
}

/// Plays a round, and never fails: what is wrong is in the outcome.
pub async fn play(plan: Plan) -> (Class, Outcome) {
    let begun = Instant::now();
    let mut outcome = Outcome::default();
    match Site::new(plan.needs).await {
        Ok(site) => {
            let wrong = match played(&site, &plan, &mut outcome).await {
                Ok(wrong) => wrong,
                Err(error) => vec![format!("{error:#}")],
            };
            if !wrong.is_empty() {
                let words = format!("{plan:#?}\n\n{}", wrong.join("\n"));
                // What was left of it must not stand in the way of others.
                remove_containers(&site).await;
                outcome.folder = Some(site.keep(&words));
            }
            outcome.wrong = wrong;
        }
        Err(error) => outcome.wrong = vec![format!("the world could not be made: {error:#}")],
    }
    outcome.took = begun.elapsed();
    outcome.line = line(&plan, &outcome);
    (plan.class, outcome)
}

fn line(plan: &Plan, outcome: &Outcome) -> String {
    let mut line = format!(
        "{}:{} {:?} {}, {}, {}, {:.1} s",
        plan.class.name(),
        plan.number,
        plan.kind,
        counted(outcome.starts, "start"),
        counted(outcome.kills, "kill"),
        counted(outcome.faults, "fault"),
        outcome.took.as_secs_f64()
    );
    for wrong in &outcome.wrong {
        let _ = write!(line, "\n    WRONG {wrong}");
    }
    if let Some(folder) = &outcome.folder {
        let _ = write!(
            line,
            "\n    planned {:?}\n    kept in {}",
            plan.faults,
            folder.display()
        );
    }
    line
}

async fn played(site: &Site, plan: &Plan, outcome: &mut Outcome) -> anyhow::Result<Vec<String>> {
    if plan.class == Class::Pause {
        site.pace.store(THINKING, Ordering::Relaxed);
    }
    if plan.needs.gate.is_some_and(|gate| gate.is_automatic) {
        site.start(&["auto-approve", "on", "--ttl", "30m"])?.wait().await?;
    }
    let job = Job::open(site, plan.kind, "kitchen");
    let mut wrong = Vec::new();
    let mut pending: VecDeque<_> = plan.faults.iter().copied().collect();
    while outcome.starts < MOST_STARTS {
        go_on(site, &job).await?;
        wrong.extend(allow(site, &job, plan.needs.gate).await?);
        outcome.starts += 1;
        let mut program = site.start(&["run"])?;
        loop {
            let Some((moment, fault)) = pending.front().copied() else {
                let ended = tokio::time::timeout(PATIENCE, program.wait()).await;
                ended.context("the program did not end")??;
                break;
            };
            tokio::select! {
                ended = program.wait() => { ended?; break }
                () = moment.comes(site, &job) => {}
            }
            pending.pop_front();
            fault.strike(site, &job, &mut program).await?;
            if fault == Fault::Kill {
                outcome.kills += 1;
                break;
            }
            outcome.faults += 1;
        }
        if is_over(site).await {
            break;
        }
    }
    outcome.missed = pending.len();
    if let Some(clock) = &site.clock {
        clock.set(0)?;
    }
    // One more, as cron would: it sweeps what a KILL at the very end has left, and does nothing
    // else.
    let before = (job.labels(), job.told(site).len());
    go_on(site, &job).await?;
    let mut program = site.start(&["run"])?;
    let ended = tokio::time::timeout(PATIENCE, program.wait()).await;
    ended.context("the last start did not end")??;
    let after = (job.labels(), job.told(site).len());
    let store = Store::open(site).await?;
    let is_gated = plan.needs.gate.is_some();
    wrong.extend(judge::task(site, &job, &store, is_gated).await?);
    store.close().await;
    if is_gated {
        judge::gate(site, outcome.kills, &mut wrong);
    }
    wrong.extend(judge::leftovers(site).await?);
    if before != after {
        wrong.push(format!("a start after the end changed {before:?} into {after:?}"));
    }
    let logs = std::fs::read_dir(site.logs()).into_iter().flatten().flatten();
    let mut logged = logs.filter_map(|file| std::fs::read_to_string(file.path()).ok());
    if logged.any(|text| text.contains("another run is active")) {
        wrong.push("a dead program was taken for a living one".to_owned());
    }
    Ok(wrong)
}

/// Does what time and people would do: lets pass what a run waits for, and resumes what is paused.
async fn go_on(site: &Site, job: &Job) -> anyhow::Result<()> {
    site.start(&["resume", "--all"])?.wait().await?;
    let Ok(store) = Store::open(site).await else {
        return Ok(());
    };
    // A KILL may have come before the tables were made.
    let runs = store.runs().await.unwrap_or_default();
    if !runs.is_empty() {
        store.make_everything_due().await?;
    }
    store.close().await;
    if runs.iter().any(|run| run.state.starts_with("paused")) {
        job.comment("/agent resume");
    }
    Ok(())
}

/// Has somebody allow what waits, and returns what must not be while it does.
async fn allow(site: &Site, job: &Job, gate: Option<Gate>) -> anyhow::Result<Vec<String>> {
    let (Some(gate), Ok(store)) = (gate, Store::open(site).await) else {
        return Ok(Vec::new());
    };
    let runs = store.runs().await.unwrap_or_default();
    store.close().await;
    let Some(run) = runs.iter().find(|run| run.state.starts_with("awaiting_approval")) else {
        return Ok(Vec::new());
    };
    let mut wrong = judge::undelivered(site, job);
    if gate.is_automatic && run.state.ends_with("delivering") {
        wrong.push("a result waits for people that passes by itself".to_owned());
    }
    job.comment("/agent approve");
    site.allowed.fetch_add(1, Ordering::SeqCst);
    Ok(wrong)
}

async fn is_over(site: &Site) -> bool {
    let Ok(store) = Store::open(site).await else {
        return false;
    };
    let runs = store.runs().await.unwrap_or_default();
    store.close().await;
    !runs.is_empty() && runs.iter().all(|run| run.is_finished)
}

async fn remove_containers(site: &Site) {
    for name in site.containers().await.unwrap_or_default() {
        let _ = tokio::process::Command::new("docker")
            .args(["rm", "-f", &name])
            .output()
            .await;
    }
}
