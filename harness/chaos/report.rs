//! The table for people and `target/chaos/report.json` for scripts.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Context;
use coding_agent_harness::build;
use serde_json::{Value, json};

use crate::class::Class;
use crate::round::Outcome;

/// Prints the table, writes the file, and returns how many rounds ended as they must not.
pub fn show(rounds: usize, seed: u64, outcomes: &[(Class, Outcome)]) -> anyhow::Result<usize> {
    let machine = machine();
    println!("\n| what goes wrong | rounds | KILLs | other faults | too late | starts | median s | violations |");
    println!("|---|{}", "---:|".repeat(7));
    let mut rows = Vec::new();
    for class in Class::ALL {
        let own: Vec<&Outcome> = outcomes
            .iter()
            .filter(|(of, _)| *of == class)
            .map(|(_, outcome)| outcome)
            .collect();
        if !own.is_empty() {
            rows.push(row(class.name(), class.describe(), &own));
        }
    }
    let all: Vec<&Outcome> = outcomes.iter().map(|(_, outcome)| outcome).collect();
    rows.push(row("all", "all", &all));
    for row in &rows {
        let cell = |key: &str| row[key].as_str().map_or_else(|| row[key].to_string(), str::to_owned);
        let keys = [
            "what",
            "rounds",
            "kills",
            "faults",
            "missed",
            "starts",
            "median_seconds",
            "violations",
        ];
        println!("| {} |", keys.map(cell).join(" | "));
    }
    println!("\nSEED={seed} ROUNDS={rounds}");
    for (key, value) in machine.as_object().into_iter().flatten() {
        println!("{key}: {}", value.as_str().unwrap_or_default());
    }
    let broken: Vec<&Outcome> = all.into_iter().filter(|outcome| !outcome.wrong.is_empty()).collect();
    let stories: Vec<&String> = broken.iter().map(|outcome| &outcome.line).collect();
    let report = json!({ "seed": seed, "rounds": rounds, "machine": machine, "classes": rows, "violations": stories });
    let path = write("report.json", &report).context("the report cannot be written")?;
    println!("report: {}", path.display());
    for story in stories {
        println!("{story}");
    }
    Ok(broken.len())
}

fn row(name: &str, what: &str, outcomes: &[&Outcome]) -> Value {
    let sum = |count: fn(&Outcome) -> usize| outcomes.iter().map(|outcome| count(outcome)).sum::<usize>();
    let mut seconds: Vec<f64> = outcomes.iter().map(|outcome| outcome.took.as_secs_f64()).collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds.get(seconds.len() / 2).copied().unwrap_or_default();
    json!({
        "class": name,
        "what": what,
        "rounds": outcomes.len(),
        "kills": sum(|outcome| outcome.kills),
        "faults": sum(|outcome| outcome.faults),
        "missed": sum(|outcome| outcome.missed),
        "starts": sum(|outcome| outcome.starts),
        "median_seconds": (median * 10.0).round() / 10.0,
        "violations": sum(|outcome| usize::from(!outcome.wrong.is_empty())),
    })
}

/// Returns the machine and the build as every report tells them, and the engine's version.
pub fn machine() -> Value {
    let docker = Command::new("docker")
        .args(["version", "--format", "{{.Server.Version}}"])
        .output();
    let docker = docker.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let mut machine = coding_agent_harness::machine::described();
    machine["docker"] = json!(docker.unwrap_or_default());
    machine
}

/// Writes a report beside the builds of all profiles.
pub fn write(name: &str, report: &Value) -> anyhow::Result<PathBuf> {
    let path = build::results("chaos")?.join(name);
    build::write_report(&path, report)?;
    Ok(path)
}
