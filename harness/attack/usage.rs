//! The resources that the worker and its children took: memory, space in the log, and time for a
//! search.

use std::time::Duration;

use coding_agent_harness::memory;
use tokio::process::Child;
use tokio::time::Instant;

use crate::breach::{Breach, Rule};
use crate::class::Class;
use crate::site::Site;

const LARGEST_LOGS: u64 = 10 * 1024 * 1024;
const LONGEST_SEARCH: u64 = 25_000;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// Waits until a program ends; returns whether it did in time, and the most memory that it and each
/// process below it ever had.
pub async fn watched(child: &mut Child, patience: Duration) -> (bool, u64) {
    let end = Instant::now() + patience;
    let worker = child.id();
    let mut most = 0;
    while Instant::now() < end {
        tokio::select! {
            _ = child.wait() => return (true, most),
            () = tokio::time::sleep(BETWEEN_LOOKS) => {}
        }
        most = most.max(worker.and_then(high_water).unwrap_or(0));
    }
    (false, most)
}

/// Returns the highest mark among a process and all below it; `None` where it has ended.
fn high_water(process: u32) -> Option<u64> {
    let own = memory::bytes(process, "VmHWM")?;
    let tasks = std::fs::read_dir(format!("/proc/{process}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let lists = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok());
    let lists: Vec<String> = lists.collect();
    let below = lists.iter().flat_map(|list| list.split_whitespace());
    let below = below.filter_map(|id| high_water(id.parse().ok()?)).max();
    Some(own.max(below.unwrap_or(0)))
}

/// Returns the most memory that is no breach: less where patterns, streams or packs are tried than
/// where large things are worked on.
fn most_memory(site: &Site) -> u64 {
    let megabytes = match site.targets.first().map(|target| target.attempt.class) {
        Some(Class::Pattern | Class::Hose) => 300,
        Some(Class::Delta) => 600,
        _ => 1_500,
    };
    megabytes * 1024 * 1024
}

pub fn look(site: &Site, breaches: &mut Vec<Breach>) {
    let (most, limit) = (site.most_memory(), most_memory(site));
    if most > limit {
        let what = format!("a process had {most} bytes of memory, and {limit} are enough");
        breaches.push(Breach::of(Rule::Memory, None, what));
    }
    let logs = site.folder().join("logs");
    let entries = std::fs::read_dir(&logs).into_iter().flatten().flatten();
    let sizes = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "log"));
    let total: u64 = sizes.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
    if total > LARGEST_LOGS {
        breaches.push(Breach::of(Rule::Logs, None, format!("the logs have {total} bytes")));
    }
    for line in site.journal() {
        let is_search = line["tool"] == "repository/search";
        if is_search && line["milliseconds"].as_u64().is_some_and(|took| took > LONGEST_SEARCH) {
            breaches.push(Breach::of(Rule::Stuck, None, format!("a search took long: {line}")));
        }
    }
}
