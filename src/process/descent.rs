//! Finds the descendants of a process, as `/proc` shows them at this moment.
//!
//! The result is a snapshot, not a promise: processes come and go while it is taken. Callers that
//! need certainty look until nothing is left (see [`super::ending`]).

use std::collections::{HashMap, HashSet};
use std::fs;

use super::stat::Stat;

/// A living process.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Process {
    pub id: u32,
    /// Clock ticks after boot; with `id` it tells a process from a later one that got the same id.
    pub started: u64,
    /// The program's short name, as the kernel keeps it.
    pub name: String,
}

/// Returns all living descendants of the process `root`, without itself and without zombies.
pub fn descendants(root: u32) -> Vec<Process> {
    let mut children: HashMap<u32, Vec<(u32, Stat)>> = HashMap::new();
    for (id, stat) in every_process() {
        children.entry(stat.parent).or_default().push((id, stat));
    }
    let mut found = Vec::new();
    let mut seen = HashSet::from([root]);
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for (id, stat) in children.remove(&parent).unwrap_or_default() {
            // Ids may be reused during the snapshot: without `seen` there could be a cycle.
            if seen.insert(id) {
                parents.push(id);
                if stat.is_alive {
                    found.push(Process {
                        id,
                        started: stat.started,
                        name: stat.name,
                    });
                }
            }
        }
    }
    found
}

/// Returns the processes of the session of `leader`, without itself and with zombies.
pub fn session(leader: u32) -> Vec<(u32, Stat)> {
    every_process()
        .filter(|(id, stat)| stat.session == leader && *id != leader)
        .collect()
}

fn every_process() -> impl Iterator<Item = (u32, Stat)> {
    let folder = fs::read_dir("/proc").into_iter().flatten().flatten();
    folder.filter_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        Some((id, Stat::of(id)?))
    })
}
