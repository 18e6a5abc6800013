//! The table for people and `target/bench/report.json` for scripts.

use std::path::PathBuf;

use anyhow::Context;
use serde_json::{Value, json};

use crate::figure::Figure;
use crate::site::folder_of_the_build;

/// Prints the table, then writes the file.
pub fn show(figures: &[Figure]) -> anyhow::Result<()> {
    let machine = machine();
    let columns = ["", "unit", "least", "median", "p95", "floor", "ratio", "target", "met"];
    println!("\n| {} |\n|---|---|{}", columns.join(" | "), "---:|".repeat(7));
    for figure in figures {
        println!("{}", row(figure));
    }
    println!();
    for (key, value) in machine.as_object().into_iter().flatten() {
        println!("{key}: {}", value.as_str().unwrap_or_default());
    }
    let report = json!({ "machine": machine, "figures": figures.iter().map(judged).collect::<Vec<_>>() });
    let path = write(&report).context("the report cannot be written")?;
    println!("report: {}", path.display());
    Ok(())
}

fn row(figure: &Figure) -> String {
    let number = |value: f64| match value {
        value if value >= 100.0 || value.fract() == 0.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    };
    let or_nothing = |value: Option<f64>| value.map_or_else(String::new, number);
    let targets = [
        figure.target.map(number),
        figure.target_ratio.map(|ratio| format!("{}x", number(ratio))),
    ];
    let cells = [
        figure.name.to_owned(),
        figure.unit.to_owned(),
        number(figure.least),
        number(figure.median),
        number(figure.p95),
        or_nothing(figure.floor),
        or_nothing(figure.ratio),
        targets.into_iter().flatten().collect::<Vec<_>>().join(", "),
        match figure.is_met() {
            Some(true) => "yes".to_owned(),
            Some(false) => "no".to_owned(),
            None => String::new(),
        },
    ];
    format!("| {} |", cells.join(" | "))
}

fn judged(figure: &Figure) -> Value {
    let mut value = json!(figure);
    value["met"] = json!(figure.is_met());
    value
}

/// What the figures depend on besides the program.
fn machine() -> Value {
    let processors = std::thread::available_parallelism().map_or(0, usize::from);
    let field = |file: &str, key: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(key));
        line.unwrap_or_default()
            .trim_matches([' ', '\t', ':', '=', '"'])
            .to_owned()
    };
    let profile = if cfg!(debug_assertions) { "dev" } else { "release" };
    json!({
        "date": chrono::Utc::now().format("%Y-%m-%d %H:%M UTC").to_string(),
        "version": env!("CARGO_PKG_VERSION"),
        "profile": profile,
        "processor": format!("{processors} x {}", field("/proc/cpuinfo", "model name")),
        "memory": field("/proc/meminfo", "MemTotal"),
        "load": std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned(),
        "system": field("/etc/os-release", "PRETTY_NAME"),
        "kernel": std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
    })
}

/// Beside the builds of all profiles.
fn write(report: &Value) -> anyhow::Result<PathBuf> {
    let build = folder_of_the_build()?;
    let folder = build.parent().unwrap_or(&build).join("bench");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join("report.json");
    std::fs::write(&path, serde_json::to_string_pretty(report)? + "\n")?;
    Ok(path)
}
