//! Many tasks in one long-running `serve` with eight consumers, on the real engine, while things go
//! wrong; and how much memory the program has meanwhile.
//!
//! The first half is disturbed by KILL as well, unless one process is to work on all of it. The
//! program that works on the second half is never killed, so that its memory can be compared at
//! different ages. Memory that goes on growing once its caches are full is a violation like any
//! other. People merge what is delivered: of a world in which ever more requests stay open a
//! program has ever more to follow.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent::plain::counted;
use coding_agent_harness::memory::{self, Course, Sample};
use fastrand::Rng;
use serde_json::{Value, json};
use tokio::process::Child;

use crate::fake::model::Trouble as ModelTrouble;
use crate::fake::traffic::Fault as Trouble;
use crate::fault::Fault;
use crate::job::{Job, Kind};
use crate::judge;
use crate::report::{machine, write};
use crate::site::{Needs, Site};
use crate::store::Store;

const CONSUMERS: usize = 8;

/// Items that carry the trigger or are worked on at the same time.
const OPEN_AT_ONCE: usize = 12;

/// The longest time in which no task may come to its end.
const PATIENCE: Duration = Duration::from_mins(5);

/// The requests that the fake GitHub answers: more than the tasks need.
const REQUESTS: u64 = 10_000_000;

/// How slowly the model answers.
const THINKING: u64 = 100;

/// The counts of what has happened until now.
#[derive(Default)]
struct Tally {
    kills: usize,
    faults: usize,
    /// Tasks that were finished before this program was started.
    before: usize,
    samples: Vec<Value>,
    /// The same samples, as they are judged.
    own: Vec<Sample>,
}

/// Works on `count` tasks, all of them in one process unless it may be `killed`; returns how many
/// things are wrong afterwards.
pub async fn soak(count: usize, seed: u64, killed: bool) -> anyhow::Result<usize> {
    let begun = Instant::now();
    let mut random = Rng::with_seed(seed);
    let site = Site::new(Needs {
        proxy: true,
        native: true,
        consumers: CONSUMERS,
        warm: 2,
        ..Needs::default()
    })
    .await?;
    site.pace.store(THINKING, Ordering::Relaxed);
    // Some 150 tasks in a quarter of an hour use up what GitHub answers in an hour. What happens then
    // is the subject of other rounds; here no task would end any more.
    site.github.rate_limited(REQUESTS, Duration::from_hours(24));
    let mut tally = Tally::default();
    let (jobs, mut wrong) = match worked(&site, count, killed, &mut random, &mut tally).await {
        Ok(jobs) => (jobs, Vec::new()),
        Err(error) => (Vec::new(), vec![format!("{error:#}")]),
    };
    let store = Store::open(&site).await?;
    for job in &jobs {
        wrong.extend(judge::task(&site, job, &store, false).await?);
    }
    store.close().await;
    wrong.extend(judge::leftovers(&site).await?);
    let (told, grows) = judged(&tally.own);
    wrong.extend(grows.then(|| told.clone()));
    show(count, seed, begun.elapsed(), &tally, &told, &wrong)?;
    if !wrong.is_empty() {
        println!("kept in {}", site.keep(&wrong.join("\n")).display());
    }
    Ok(wrong.len())
}

async fn worked(
    site: &Site,
    count: usize,
    killed: bool,
    random: &mut Rng,
    tally: &mut Tally,
) -> anyhow::Result<Vec<Job>> {
    let mut jobs: Vec<Job> = Vec::new();
    let mut program = site.start(&["serve"])?;
    let (mut finished, mut changed) = (0, Instant::now());
    let mut accepted = HashSet::new();
    while finished < count {
        while jobs.len() < count && jobs.len() < finished + OPEN_AT_ONCE {
            let kind = Kind::ALL[random.usize(0..4)];
            jobs.push(Job::open(site, kind, &format!("room-{:03}", jobs.len())));
        }
        tokio::time::sleep(Duration::from_millis(random.u64(200..600))).await;
        if let Some(ended) = program.try_wait()? {
            anyhow::bail!("the program ended by itself: {ended}");
        }
        let done = settle(site).await.unwrap_or_default();
        for job in &jobs {
            if done.contains(&job.task()) && accepted.insert(job.task()) {
                job.accept(site);
            }
        }
        let now = done.len().max(finished);
        if now > finished {
            changed = Instant::now();
            sample(tally, &program, finished, now, count)?;
            finished = now;
        }
        anyhow::ensure!(
            changed.elapsed() < PATIENCE,
            "no task ended for {} s",
            PATIENCE.as_secs()
        );
        // About one thing goes wrong for every three tasks.
        if random.u8(0..6) == 0 {
            let may_kill = killed && finished < count / 2;
            let fault = fault(random, may_kill);
            let job = random.choice(&jobs).context("there are tasks")?;
            eprintln!("soak: {finished}/{count} {fault:?}");
            fault.strike(site, job, &mut program).await?;
            if fault == Fault::Kill {
                tally.kills += 1;
                tally.before = finished;
                program = site.start(&["serve"])?;
            } else {
                tally.faults += 1;
            }
        }
    }
    end(&mut program).await?;
    // One start more sweeps the containers that could not be removed while the engine was away.
    let mut last = site.start(&["run"])?;
    let ended = tokio::time::timeout(PATIENCE, last.wait()).await;
    ended.context("the last start did not end")??;
    Ok(jobs)
}

fn fault(random: &mut Rng, may_kill: bool) -> Fault {
    match random.u8(0..12) {
        0..=1 if may_kill => Fault::Kill,
        0..=2 => Fault::ContainerKilled,
        3 => Fault::DockerGone(Duration::from_millis(random.u64(200..2000))),
        4 => Fault::Forge(Trouble::DropsAfterWork, random.usize(1..4)),
        5 => Fault::Forge(Trouble::Fails(502), random.usize(1..8)),
        6 => Fault::Forge(Trouble::FailsAfterWork(500), random.usize(1..4)),
        7 => Fault::Forge(Trouble::Waits(Duration::from_secs(3)), random.usize(1..4)),
        8 => Fault::Forge(Trouble::Drops, random.usize(1..6)),
        9 => Fault::Model(ModelTrouble::Fails(500), random.usize(1..6)),
        10 => Fault::Model(ModelTrouble::BreaksOff, random.usize(1..4)),
        _ => Fault::ForgeLimited(Duration::from_secs(2)),
    }
}

/// Lets pass what runs wait for, and returns the tasks that are finished.
async fn settle(site: &Site) -> anyhow::Result<HashSet<String>> {
    let store = Store::open(site).await?;
    let runs = store.runs().await;
    let due = store.make_everything_due().await;
    store.close().await;
    due?;
    let finished = runs?.into_iter().filter(|run| run.is_finished);
    Ok(finished.map(|run| run.task).collect())
}

/// Notes the memory down when another tenth of the tasks is finished.
fn sample(tally: &mut Tally, program: &Child, before: usize, now: usize, count: usize) -> anyhow::Result<()> {
    for tenth in 1..=10 {
        let at = count * tenth / 10;
        if (before + 1..=now).contains(&at) {
            let own = Sample {
                process: tally.kills,
                tasks: now - tally.before,
                megabytes: megabytes(program, "RssAnon")?,
            };
            tally.samples.push(json!({
                "tasks": at,
                "tasks_of_this_process": own.tasks,
                "resident_megabytes": megabytes(program, "VmRSS")?,
                "own_megabytes": own.megabytes,
            }));
            tally.own.push(own);
        }
    }
    Ok(())
}

/// Returns the memory of the program that the kernel tells under this name, in megabytes.
fn megabytes(program: &Child, key: &str) -> anyhow::Result<f64> {
    let id = program.id().context("the program has ended")?;
    let bytes = memory::bytes(id, key).context("the program has ended")?;
    let kilobytes = u32::try_from(bytes / 1024)?;
    Ok((f64::from(kilobytes) / 102.4).round() / 10.0)
}

/// Tells in a sentence whether the memory of the last process is flat, and whether it grows.
fn judged(samples: &[Sample]) -> (String, bool) {
    let over = |from: Sample, to: Sample| {
        format!(
            "own memory went from {:.1} MB after {} tasks of one process to {:.1} MB after {}; {:.0} MB more are allowed",
            from.megabytes,
            from.tasks,
            to.megabytes,
            to.tasks,
            memory::ALLOWANCE
        )
    };
    match memory::course(samples) {
        Course::Flat(from, to) => (format!("memory is flat: {}", over(from, to)), false),
        Course::Grows(from, to) => (format!("memory grows: {}", over(from, to)), true),
        Course::Unknown(tasks) => (
            format!(
                "memory was NOT judged: the last process finished {}, and {} are needed (SOAK=500 KILLS=0)",
                counted(tasks, "task"),
                memory::SETTLED_AFTER + memory::JUDGED_OVER
            ),
            false,
        ),
    }
}

/// Ends the program as its service manager does.
async fn end(program: &mut Child) -> anyhow::Result<()> {
    let id = program.id().context("the program has ended")?;
    let id = i32::try_from(id).ok().and_then(rustix::process::Pid::from_raw);
    rustix::process::kill_process(id.context("a process has a number")?, rustix::process::Signal::TERM)?;
    let ended = tokio::time::timeout(Duration::from_mins(2), program.wait()).await;
    let ended = ended.context("the program did not end when it was asked to")??;
    anyhow::ensure!(ended.success(), "the program ended with {ended}");
    Ok(())
}

fn show(count: usize, seed: u64, took: Duration, tally: &Tally, told: &str, wrong: &[String]) -> anyhow::Result<()> {
    const KEYS: [&str; 4] = ["tasks", "tasks_of_this_process", "resident_megabytes", "own_megabytes"];
    println!("\n| tasks finished | of them by this process | resident MB | its own MB |\n|---:|---:|---:|---:|");
    for sample in &tally.samples {
        let cells = KEYS.map(|key| sample[key].to_string());
        println!("| {} |", cells.join(" | "));
    }
    let minutes = took.as_secs_f64() / 60.0;
    println!(
        "\n{}, {CONSUMERS} consumers, {}, {}, {minutes:.1} minutes, {}, SEED={seed}",
        counted(count, "task"),
        counted(tally.kills, "KILL"),
        counted(tally.faults, "other fault"),
        counted(wrong.len(), "violation")
    );
    println!("{told}");
    for wrong in wrong {
        println!("    WRONG {wrong}");
    }
    let report = json!({
        "seed": seed,
        "tasks": count,
        "consumers": CONSUMERS,
        "kills": tally.kills,
        "faults": tally.faults,
        "minutes": minutes,
        "memory": tally.samples,
        "memory_judged": told,
        "machine": machine(),
        "violations": wrong,
    });
    println!("report: {}", write("soak.json", &report)?.display());
    Ok(())
}
