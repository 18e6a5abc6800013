//! The changes of a command in the project, found by looking at its files before and after.
//!
//! Models take a `sed` that matched nothing for an edit, and repeat it. A look compares sizes and
//! times, and the text of small files, so it takes milliseconds and no process; asking git would
//! take three. It leaves out what tools fill by themselves, and says nothing in a project with too
//! many files.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, Metadata};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::text::shown_path;

/// Most files and folders that are looked at.
const MOST_ENTRIES: usize = 20_000;
/// Most bytes of a file whose lines are counted.
const LARGEST_TEXT: u64 = 64 * 1024;
/// Most bytes of all texts that are remembered.
const MOST_TEXT: usize = 4 * 1024 * 1024;
/// Most changes that are named.
const MOST_NAMED: usize = 8;

/// Folders that tools fill.
const LEFT_OUT: [&str; 12] = [
    ".git",
    ".gradle",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".tox",
    ".venv",
    "__pycache__",
    "node_modules",
    "site-packages",
    "target",
    "venv",
];

/// The project's files at one moment.
#[derive(Debug, Default)]
pub(super) struct Look {
    files: BTreeMap<PathBuf, Seen>,
}

#[derive(Debug, Clone, PartialEq)]
struct Seen {
    stamp: Stamp,
    /// The text, if it is small and was remembered.
    text: Option<Arc<str>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size: u64,
    mode: u32,
    inode: u64,
    changed: (i64, i64),
}

impl Look {
    /// Looks at the files beneath `root`; one that is the same as in `before` is not read again.
    /// `None` if there are too many, or the folder cannot be read.
    pub(super) fn take(root: &Path, before: Option<&Self>) -> Option<Self> {
        let mut look = Self::default();
        let mut entries = 0;
        let mut text_bytes = 0;
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            // A folder that has just gone, or may not be read, holds nothing.
            let Ok(listed) = fs::read_dir(root.join(&folder)) else {
                if folder.as_os_str().is_empty() {
                    return None;
                }
                continue;
            };
            for entry in listed.flatten() {
                entries += 1;
                if entries > MOST_ENTRIES {
                    return None;
                }
                let name = entry.file_name();
                let path = folder.join(&name);
                let Ok(metadata) = entry.metadata() else { continue };
                if metadata.is_dir() {
                    if !LEFT_OUT.iter().any(|left_out| name == *left_out) {
                        folders.push(path);
                    }
                    continue;
                }
                let stamp = Stamp::of(&metadata);
                let known = before.and_then(|before| before.files.get(&path));
                let text = match known.filter(|known| known.stamp == stamp) {
                    Some(known) => known.text.clone(),
                    None => text(&root.join(&path), &metadata, MOST_TEXT - text_bytes),
                };
                text_bytes = (text_bytes + text.as_ref().map_or(0, |text| text.len())).min(MOST_TEXT);
                look.files.insert(path, Seen { stamp, text });
            }
        }
        Some(look)
    }

    /// Returns the differences from `before`: `{"changes": [{"path", "how", "added"?, "removed"?}],
    /// "more"}`.
    pub(super) fn since(&self, before: &Self) -> Value {
        let mut changes: Vec<Value> = Vec::new();
        for (path, now) in &self.files {
            match before.files.get(path) {
                None => changes.push(change(path, "new", Some(""), now.text.as_deref())),
                Some(then) if then == now => {}
                Some(then) => match (then.text.as_deref(), now.text.as_deref()) {
                    // Written again as it was.
                    (Some(old), Some(new)) if old == new => {
                        if then.stamp.mode != now.stamp.mode {
                            changes.push(json!({ "path": shown_path(path), "how": "mode" }));
                        }
                    }
                    (old, new) => changes.push(change(path, "changed", old, new)),
                },
            }
        }
        for (path, then) in &before.files {
            if !self.files.contains_key(path) {
                changes.push(change(path, "deleted", then.text.as_deref(), Some("")));
            }
        }
        let more = changes.len().saturating_sub(MOST_NAMED);
        changes.truncate(MOST_NAMED);
        json!({ "changes": changes, "more": more })
    }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.size(),
            mode: metadata.mode(),
            inode: metadata.ino(),
            // Unlike the time of the content, no program sets this one back.
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

fn text(path: &Path, metadata: &Metadata, room: usize) -> Option<Arc<str>> {
    if !metadata.is_file() || metadata.size() > LARGEST_TEXT || metadata.size() > room as u64 {
        return None;
    }
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
    let flags = i32::try_from(flags.bits()).ok()?;
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    let mut text = String::new();
    file.take(LARGEST_TEXT).read_to_string(&mut text).ok()?;
    Some(text.into())
}

fn change(path: &Path, how: &str, old: Option<&str>, new: Option<&str>) -> Value {
    let mut change = json!({ "path": shown_path(path), "how": how });
    if let (Some(old), Some(new)) = (old, new) {
        let (added, removed) = counted(old, new);
        change["added"] = added.into();
        change["removed"] = removed.into();
    }
    change
}

/// Returns the number of added and removed lines: those that occur more often in one text than in
/// the other. If there are none, lines that moved count.
fn counted(old: &str, new: &str) -> (usize, usize) {
    let mut counts: HashMap<&str, i64> = HashMap::new();
    for line in new.lines() {
        *counts.entry(line).or_default() += 1;
    }
    for line in old.lines() {
        *counts.entry(line).or_default() -= 1;
    }
    let sum = |counts: &HashMap<&str, i64>, sign: i64| -> i64 {
        counts.values().map(|count| (count * sign).max(0)).sum::<i64>()
    };
    let (added, removed) = (sum(&counts, 1), sum(&counts, -1));
    if (added, removed) == (0, 0) && old != new {
        return (1, 1);
    }
    (
        usize::try_from(added).unwrap_or(0),
        usize::try_from(removed).unwrap_or(0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_named_with_its_lines() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("a.py", "one\ntwo\nthree\n");
        write("b.py", "x\n");
        write("same.py", "same\n");
        write("node_modules/lib/index.js", "1\n");
        let before = Look::take(folder.path(), None).unwrap();
        assert_eq!(before.since(&before), json!({ "changes": [], "more": 0 }));

        write("a.py", "one\n2\nthree\nfour\n");
        write("same.py", "same\n");
        write("src/new.py", "1\n2\n");
        write("node_modules/lib/index.js", "2\n");
        fs::write(folder.path().join("blob"), [0xff, 0xfe]).unwrap();
        fs::remove_file(folder.path().join("b.py")).unwrap();
        let after = Look::take(folder.path(), Some(&before)).unwrap();
        assert_eq!(
            after.since(&before),
            json!({ "changes": [
                { "path": "a.py", "how": "changed", "added": 2, "removed": 1 },
                { "path": "blob", "how": "new" },
                { "path": "src/new.py", "how": "new", "added": 2, "removed": 0 },
                { "path": "b.py", "how": "deleted", "added": 0, "removed": 1 },
            ], "more": 0 })
        );
    }

    #[test]
    fn lines_that_moved_are_a_change() {
        assert_eq!(counted("a\nb\n", "b\na\n"), (1, 1));
        assert_eq!(counted("a\na\n", "a\n"), (0, 1));
    }

    #[test]
    fn of_many_changes_a_few_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let before = Look::take(folder.path(), None).unwrap();
        for number in 0..20 {
            fs::write(folder.path().join(format!("{number:02}")), "").unwrap();
        }
        let changes = Look::take(folder.path(), Some(&before)).unwrap().since(&before);
        assert_eq!(changes["changes"].as_array().unwrap().len(), MOST_NAMED);
        assert_eq!(changes["more"], 12);
    }
}
