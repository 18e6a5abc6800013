//! The operations of a result, read from git's raw difference: never from what a model says of it.

use std::collections::{BTreeMap, BTreeSet};

use super::config::{Config, Operation};

/// The kind of change to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Added,
    Modified,
    Deleted,
    Renamed,
    /// A file became a link or another repository, or the other way round.
    Retyped,
}

/// A file that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub kind: Kind,
    pub path: String,
    /// The path before, of a file that was renamed.
    pub from: Option<String>,
    /// Whether it is a file: no link, and no other repository.
    pub is_file: bool,
}

/// All that a result would push.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// Changes between base and result.
    pub changes: Vec<Change>,
    /// Changes of each commit: what one adds and another takes away is pushed as well.
    pub steps: Vec<Change>,
    /// Lines that are removed from files, by their path.
    pub removed: BTreeMap<String, u64>,
}

/// Facts about a result that its difference does not show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Circumstances {
    /// The redactor found something.
    pub has_secrets: bool,
    /// The repository is not certain to be private.
    pub is_public: bool,
    pub is_over_cost_limit: bool,
}

/// Git's answer cannot be read, so nothing is known of the difference.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the raw difference cannot be read at {0:?}")]
pub struct Unreadable(String);

/// Modes of git: a link, another repository, and a path that is not there.
const LINK: &str = "120000";
const REPOSITORY: &str = "160000";
const NONE: &str = "000000";

/// Reads what `git diff-tree -z --raw` and `git log -z --raw --format=` print.
pub fn read_raw(printed: &[u8]) -> Result<Vec<Change>, Unreadable> {
    let text = String::from_utf8_lossy(printed);
    let mut fields = text.split('\0');
    let mut changes = Vec::new();
    while let Some(field) = fields.next() {
        let head = field.trim_start_matches('\n');
        if head.is_empty() {
            continue;
        }
        let unreadable = || Unreadable(head.chars().take(100).collect());
        let columns: Vec<&str> = head.strip_prefix(':').ok_or_else(unreadable)?.split(' ').collect();
        let [before, after, _, _, status] = columns[..] else {
            return Err(unreadable());
        };
        let mut path = || fields.next().filter(|path| !path.is_empty()).ok_or_else(unreadable);
        let first = path()?.to_owned();
        let kind = match status.as_bytes().first() {
            Some(b'A') => Kind::Added,
            Some(b'M') => Kind::Modified,
            Some(b'D') => Kind::Deleted,
            Some(b'R') => Kind::Renamed,
            Some(b'T') => Kind::Retyped,
            _ => return Err(unreadable()),
        };
        let (path, from) = match kind {
            Kind::Renamed => (path()?.to_owned(), Some(first)),
            _ => (first, None),
        };
        let is_file = |mode: &str| mode != LINK && mode != REPOSITORY;
        changes.push(Change {
            kind,
            path,
            from,
            is_file: is_file(before) && (after == NONE || is_file(after)),
        });
    }
    Ok(changes)
}

/// Reads the removed lines that `git diff-tree -z --numstat --no-renames` prints; a binary file has
/// none.
pub fn read_removed(printed: &[u8]) -> BTreeMap<String, u64> {
    let text = String::from_utf8_lossy(printed);
    let removed = text.split('\0').filter_map(|line| {
        let mut fields = line.splitn(3, '\t');
        let (_, removed, path) = (fields.next()?, fields.next()?, fields.next()?);
        Some((path.to_owned(), removed.parse().unwrap_or(0)))
    });
    removed.collect()
}

impl Difference {
    /// Returns what the result does, of what the configuration can name.
    pub fn operations(&self, config: &Config, circumstances: Circumstances) -> BTreeSet<Operation> {
        let has = |kind: Kind| self.changes.iter().any(|change| change.kind == kind);
        let replaced = self.changes.iter().filter(|change| change.kind != Kind::Added).count();
        let removed: u64 = self.removed.values().sum();
        let found = [
            // Behind a rename nothing is left at the old path either.
            (Operation::Delete, has(Kind::Deleted) || has(Kind::Renamed)),
            (Operation::Rename, has(Kind::Renamed)),
            (
                Operation::BroadOverwrite,
                replaced > config.broad_overwrite_files || removed > config.broad_overwrite_lines,
            ),
            (Operation::SendSensitive, circumstances.has_secrets),
            (Operation::PushPublic, circumstances.is_public),
            (Operation::CostOverLimit, circumstances.is_over_cost_limit),
        ];
        found
            .into_iter()
            .filter(|(_, is_so)| *is_so)
            .map(|(operation, _)| operation)
            .collect()
    }

    /// Returns every path that is touched, in the result or on the way to it.
    pub fn paths(&self) -> BTreeSet<&str> {
        let all = self.changes.iter().chain(&self.steps);
        all.flat_map(|change| [Some(change.path.as_str()), change.from.as_deref()])
            .flatten()
            .collect()
    }

    /// Returns the paths at which a link or another repository is, was or was on the way.
    pub fn special(&self) -> BTreeSet<&str> {
        let all = self.changes.iter().chain(&self.steps);
        let special = all.filter(|change| !change.is_file || change.kind == Kind::Retyped);
        special.map(|change| change.path.as_str()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RAW: &str = ":100644 100644 aaaa bbbb M\0a.txt\0:000000 100755 0000 bbbb A\0new file\0:100644 000000 aaaa 0000 D\0old\0\
                       :100644 100644 aaaa bbbb R087\0from.txt\0to.txt\0:100644 120000 aaaa bbbb T\0link\0";

    fn change(kind: Kind, path: &str, from: Option<&str>, is_file: bool) -> Change {
        Change {
            kind,
            path: path.to_owned(),
            from: from.map(str::to_owned),
            is_file,
        }
    }

    #[test]
    fn every_kind_of_change_is_read() {
        let expected = [
            change(Kind::Modified, "a.txt", None, true),
            change(Kind::Added, "new file", None, true),
            change(Kind::Deleted, "old", None, true),
            change(Kind::Renamed, "to.txt", Some("from.txt"), true),
            change(Kind::Retyped, "link", None, false),
        ];
        assert_eq!(read_raw(RAW.as_bytes()).unwrap(), expected);
        // As `git log` separates commits.
        let log = format!("\0\n{RAW}\0\n:160000 000000 aaaa 0000 D\0module\0");
        let read = read_raw(log.as_bytes()).unwrap();
        assert_eq!(read[..5], expected);
        assert_eq!(read[5], change(Kind::Deleted, "module", None, false));
        assert_eq!(read_raw(b""), Ok(Vec::new()));
    }

    #[test]
    fn what_is_unknown_is_an_error_and_not_nothing() {
        for printed in [
            "M\0a\0",
            ":100644 100644 aaaa bbbb M\0",
            ":100644 100644 aaaa M\0a\0",
            ":100644 100644 aaaa bbbb X\0a\0",
            ":100644 100644 aaaa bbbb R100\0a\0",
        ] {
            assert!(read_raw(printed.as_bytes()).is_err(), "{printed:?}");
        }
    }

    #[test]
    fn lines_that_are_removed_are_counted() {
        let printed = b"3\t7\ta.txt\0-\t-\timage.png\0";
        let expected = [("a.txt".to_owned(), 7), ("image.png".to_owned(), 0)];
        assert_eq!(read_removed(printed), expected.into());
    }

    #[test]
    fn each_operation_is_seen() {
        let config = Config {
            broad_overwrite_files: 1,
            broad_overwrite_lines: 10,
            ..Config::default()
        };
        let of = |changes: &[Change], removed: u64| Difference {
            changes: changes.to_vec(),
            steps: Vec::new(),
            removed: [("a".to_owned(), removed)].into(),
        };
        let modified = change(Kind::Modified, "a", None, true);
        let calm = Circumstances::default();
        for (difference, circumstances, expected) in [
            (of(std::slice::from_ref(&modified), 10), calm, vec![]),
            (of(&[change(Kind::Added, "a", None, true)], 0), calm, vec![]),
            (
                of(&[change(Kind::Deleted, "a", None, true)], 0),
                calm,
                vec![Operation::Delete],
            ),
            (
                of(&[change(Kind::Renamed, "a", Some("b"), true)], 0),
                calm,
                vec![Operation::Delete, Operation::Rename],
            ),
            (
                of(std::slice::from_ref(&modified), 11),
                calm,
                vec![Operation::BroadOverwrite],
            ),
            (
                of(&[modified.clone(), modified.clone()], 0),
                calm,
                vec![Operation::BroadOverwrite],
            ),
            (
                of(&[modified], 0),
                Circumstances {
                    has_secrets: true,
                    is_public: true,
                    is_over_cost_limit: true,
                },
                vec![
                    Operation::SendSensitive,
                    Operation::PushPublic,
                    Operation::CostOverLimit,
                ],
            ),
        ] {
            let found = difference.operations(&config, circumstances);
            assert_eq!(found.into_iter().collect::<Vec<_>>(), expected);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_fall_over(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_raw(&bytes);
            let _ = read_removed(&bytes);
        }

        #[test]
        fn what_is_cut_off_is_an_error_or_less(cut in 0..RAW.len()) {
            if let Ok(read) = read_raw(&RAW.as_bytes()[..cut]) {
                prop_assert!(read.len() <= 5);
            }
        }
    }
}
