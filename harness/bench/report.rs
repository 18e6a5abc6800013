//! The table for people, `target/bench/report.json` for scripts, and the pictures.

use std::path::PathBuf;

use anyhow::Context;
use coding_agent_harness::build;
use coding_agent_harness::peer::Peer;
use serde_json::{Value, json};

use crate::figure::Figure;
use crate::picture;
use crate::scale::Scale;

/// The heads of the table's columns; the first two hold words.
const COLUMNS: [&str; 11] = [
    "", "unit", "least", "median", "p95", "floor", "ratio", "peer", "gain", "target", "met",
];

/// Prints the table, then writes the files.
pub fn show(figures: &[Figure], scale: Scale) -> anyhow::Result<()> {
    let machine = machine(scale)?;
    println!(
        "\n| {} |\n|---|---|{}",
        COLUMNS.join(" | "),
        "---:|".repeat(COLUMNS.len() - 2)
    );
    for figure in figures {
        println!("| {} |", cells(figure).join(" | "));
    }
    println!();
    for (key, value) in machine.as_object().into_iter().flatten() {
        println!("{key}: {}", value.as_str().unwrap_or_default());
    }
    let folder = folder(scale).context("there is no folder for the report")?;
    let report = json!({ "machine": machine, "figures": figures.iter().map(judged).collect::<Vec<_>>() });
    let rows: Vec<_> = figures.iter().map(cells).collect();
    let files = [
        ("report.json", serde_json::to_string_pretty(&report)? + "\n"),
        ("report.html", picture::page(figures, &machine, &COLUMNS, &rows)?),
        ("report.svg", picture::summary(figures)?),
    ];
    for (name, content) in files {
        let path = folder.join(name);
        let half = folder.join(format!("{name}.new"));
        // Renamed into place: a page that is open in a browser is never half of one.
        let written = std::fs::write(&half, content).and_then(|()| std::fs::rename(&half, &path));
        written.with_context(|| format!("{} cannot be written", path.display()))?;
        println!("report: {}", path.display());
    }
    Ok(())
}

fn cells(figure: &Figure) -> Vec<String> {
    let or_nothing = |value: Option<f64>| value.map_or_else(String::new, number);
    let targets = [
        figure.target.map(number),
        figure.target_ratio.map(|ratio| format!("{}x", number(ratio))),
        figure.target_gain.map(|gain| format!("gain {}", number(gain))),
    ];
    vec![
        figure.name.to_owned(),
        figure.unit.to_owned(),
        number(figure.least),
        number(figure.median),
        number(figure.p95),
        or_nothing(figure.floor),
        or_nothing(figure.ratio),
        or_nothing(figure.peer),
        or_nothing(figure.gain),
        targets.into_iter().flatten().collect::<Vec<_>>().join(", "),
        match figure.is_met() {
            Some(true) => "yes".to_owned(),
            Some(false) => "no".to_owned(),
            None => String::new(),
        },
    ]
}

/// Returns a value with as many places as are worth reading.
pub fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn judged(figure: &Figure) -> Value {
    let mut value = json!(figure);
    value["met"] = json!(figure.is_met());
    value
}

/// Returns the things besides the program that the figures depend on.
fn machine(scale: Scale) -> anyhow::Result<Value> {
    let mut machine = coding_agent_harness::machine::described();
    machine["extent"] = json!(scale.of("full", "short: the times mean nothing"));
    machine["peer"] = json!(Peer::installed()?.map_or_else(|| "none".to_owned(), |peer| peer.version));
    Ok(machine)
}

/// Makes the folder of the report, beside the builds of all profiles. A short report never takes
/// the place of a full one.
fn folder(scale: Scale) -> anyhow::Result<PathBuf> {
    build::results(scale.of("bench", "bench-short"))
}
