//! The machine and the build that figures come from.

use serde_json::{Value, json};

/// Returns what figures depend on besides the program: date, version, profile, processor, memory,
/// load, system and kernel, each as a text for people.
pub fn described() -> Value {
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

/// Returns one sentence of a machine as it was [`described`], for the foot of a report.
pub fn sentence(machine: &Value) -> String {
    let text = |key: &str| machine[key].as_str().unwrap_or_default().to_owned();
    format!(
        "{}, version {} ({}), {}, {}, load {}, {}",
        text("date"),
        text("version"),
        text("profile"),
        text("processor"),
        text("memory"),
        text("load"),
        text("system")
    )
}
