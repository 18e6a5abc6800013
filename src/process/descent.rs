//! Finds the descendants of a process, as `/proc` shows them at this moment.
//!
//! The result is a snapshot, not a promise: processes come and go while it is taken. Callers that
//! need certainty look until nothing is left (see [`super::ending`]).

use std::collections::{HashMap, HashSet};
use std::fs;

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
    let mut children: HashMap<u32, Vec<Entry>> = HashMap::new();
    for entry in every_process() {
        children.entry(entry.parent).or_default().push(entry);
    }
    let mut found = Vec::new();
    let mut seen = HashSet::from([root]);
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            // Ids may be reused during the snapshot: without `seen` there could be a cycle.
            if seen.insert(child.process.id) {
                parents.push(child.process.id);
                if child.is_alive {
                    found.push(child.process);
                }
            }
        }
    }
    found
}

struct Entry {
    parent: u32,
    is_alive: bool,
    process: Process,
}

fn every_process() -> impl Iterator<Item = Entry> {
    let folder = fs::read_dir("/proc").into_iter().flatten().flatten();
    folder.filter_map(|entry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        parse(id, &fs::read_to_string(entry.path().join("stat")).ok()?)
    })
}

/// Parses the needed fields of `/proc/ID/stat`. The name may contain spaces and brackets, so the
/// fields are counted from the last bracket.
fn parse(id: u32, stat: &str) -> Option<Entry> {
    let (before, after) = stat.rsplit_once(')')?;
    let name = before.split_once('(')?.1.to_owned();
    let fields: Vec<&str> = after.split_ascii_whitespace().collect();
    let state = *fields.first()?;
    let parent = fields.get(1)?.parse().ok()?;
    let threads: u64 = fields.get(17)?.parse().ok()?;
    let started = fields.get(19)?.parse().ok()?;
    // A main thread that has ended looks like a zombie while its other threads work on.
    let is_alive = !matches!(state, "Z" | "X") || threads > 1;
    Some(Entry {
        parent,
        is_alive,
        process: Process { id, started, name },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_brackets_and_spaces_is_read() {
        let stat = "42 (a) (b c) S 7 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 900 0 0";
        let entry = parse(42, stat).unwrap();
        assert_eq!((entry.parent, entry.is_alive), (7, true));
        assert_eq!(
            entry.process,
            Process {
                id: 42,
                started: 900,
                name: "a) (b c".to_owned()
            }
        );
    }

    #[test]
    fn a_zombie_is_dead_unless_other_threads_live() {
        let zombie = "42 (a) Z 7 42 42 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 900 0 0";
        assert!(!parse(42, zombie).unwrap().is_alive);
        let headless = "42 (a) Z 7 42 42 0 -1 0 1 0 0 0 0 0 0 0 20 0 3 0 900 0 0";
        assert!(parse(42, headless).unwrap().is_alive);
    }

    #[test]
    fn a_cut_line_is_nothing() {
        assert!(parse(42, "42 (a) S 7").is_none());
        assert!(parse(42, "").is_none());
    }
}
