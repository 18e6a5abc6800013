//! The table for people and `target/chaos/cluster.json` for scripts.

use std::time::Duration;

use coding_agent::plain::counted;
use serde_json::json;

use super::Cluster;
use super::fault::Fault;
use crate::report::{machine, write};

/// The time within which 95 of 100 runs of a dead process have to be taken over.
const TARGET: Duration = Duration::from_secs(2);

pub fn show(
    cluster: &Cluster,
    rounds: usize,
    seed: u64,
    took: Duration,
    faults: &[(Fault, Duration)],
) -> anyhow::Result<()> {
    println!(
        "\n| what goes wrong | rounds | runs taken over | after, median s | p95 s | longest s |\n|---|---:|---:|---:|---:|---:|"
    );
    let mut rows = Vec::new();
    for name in Fault::NAMES {
        let rounds = faults.iter().filter(|(fault, _)| fault.name() == name).count();
        if rounds == 0 {
            continue;
        }
        let mut after: Vec<f64> = cluster
            .taken_over
            .iter()
            .filter(|(fault, _)| fault.name() == name)
            .map(|(_, taken)| taken.after.as_secs_f64())
            .collect();
        after.sort_by(f64::total_cmp);
        let cell = |seconds: Option<f64>| seconds.map_or_else(String::new, |seconds| format!("{seconds:.2}"));
        println!(
            "| {} | {rounds} | {} | {} | {} | {} |",
            Fault::describe(name),
            after.len(),
            cell(share(&after, 50)),
            cell(share(&after, 95)),
            cell(after.last().copied())
        );
        rows.push(json!({
            "fault": name,
            "rounds": rounds,
            "taken_over": after.len(),
            "seconds_median": share(&after, 50),
            "seconds_p95": share(&after, 95),
            "seconds": after,
        }));
    }
    let mut dead: Vec<f64> = cluster
        .taken_over
        .iter()
        .filter(|(fault, taken)| matches!(fault, Fault::Worker | Fault::Host) && !taken.is_in_grace)
        .map(|(_, taken)| taken.after.as_secs_f64())
        .collect();
    dead.sort_by(f64::total_cmp);
    if let Some(p95) = share(&dead, 95) {
        let is_met = p95 <= TARGET.as_secs_f64();
        println!(
            "\nruns of dead processes, but for the seconds after the database came back: {} taken over, p95 {p95:.2} s (target {} s, {})",
            dead.len(),
            TARGET.as_secs(),
            if is_met { "met" } else { "missed" }
        );
    }
    let minutes = took.as_secs_f64() / 60.0;
    println!(
        "{}, {}, {}, {minutes:.1} minutes, {}, SEED={seed}",
        counted(rounds, "task"),
        counted(cluster.machines.len(), "machine"),
        counted(faults.len(), "fault"),
        counted(cluster.wrong.len(), "violation")
    );
    for wrong in &cluster.wrong {
        println!("    WRONG {wrong}");
    }
    let report = json!({
        "seed": seed,
        "tasks": rounds,
        "machines": cluster.machines.len(),
        "faults": rows,
        "dead_processes_p95_seconds": share(&dead, 95),
        "minutes": minutes,
        "machine": machine(),
        "violations": cluster.wrong,
    });
    println!("report: {}", write("cluster.json", &report)?.display());
    Ok(())
}

/// Returns the value that so many of 100 do not exceed.
fn share(sorted: &[f64], percent: usize) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    sorted.get((sorted.len() * percent / 100).min(last)).copied()
}
