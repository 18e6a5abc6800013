//! Stores what files were before they were edited, for `undo_edit`. Bounded: the oldest edits are
//! forgotten first.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

const PER_FILE: usize = 20;
const BYTES: usize = 32 * 1024 * 1024;

/// An edit that can be undone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edit {
    pub(super) path: PathBuf,
    /// The text before; `None` if the file did not exist.
    pub(super) before: Option<String>,
    /// The text after, to notice what somebody else has changed since.
    pub(super) after: String,
}

/// The edits of this executor's life, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    edits: VecDeque<Edit>,
}

impl History {
    pub(super) fn push(&mut self, edit: Edit) {
        let path = edit.path.clone();
        self.edits.push_back(edit);
        if self.edits.iter().filter(|edit| edit.path == path).count() > PER_FILE
            && let Some(oldest) = self.edits.iter().position(|edit| edit.path == path)
        {
            self.edits.remove(oldest);
        }
        while self.edits.iter().map(Edit::bytes).sum::<usize>() > BYTES {
            self.edits.pop_front();
        }
    }

    pub(super) fn last(&self, path: &Path) -> Option<&Edit> {
        self.edits.iter().rev().find(|edit| edit.path == path)
    }

    pub(super) fn forget_last(&mut self, path: &Path) {
        if let Some(last) = self.edits.iter().rposition(|edit| edit.path == path) {
            self.edits.remove(last);
        }
    }
}

impl Edit {
    fn bytes(&self) -> usize {
        self.before.as_ref().map_or(0, String::len) + self.after.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(path: &str, before: &str) -> Edit {
        Edit {
            path: path.into(),
            before: Some(before.to_owned()),
            after: String::new(),
        }
    }

    #[test]
    fn the_last_edit_of_a_path_comes_back_first() {
        let mut history = History::default();
        history.push(edit("a", "1"));
        history.push(edit("b", "1"));
        history.push(edit("a", "2"));
        assert_eq!(history.last(Path::new("a")), Some(&edit("a", "2")));
        history.forget_last(Path::new("a"));
        assert_eq!(history.last(Path::new("a")), Some(&edit("a", "1")));
        history.forget_last(Path::new("a"));
        assert_eq!(history.last(Path::new("a")), None);
        assert_eq!(history.last(Path::new("b")), Some(&edit("b", "1")));
    }

    #[test]
    fn old_edits_are_forgotten() {
        let mut history = History::default();
        history.push(edit("b", "1"));
        for number in 0..30 {
            history.push(edit("a", &number.to_string()));
        }
        assert_eq!(history.edits.len(), PER_FILE + 1);
        for _ in 0..5 {
            history.push(edit("c", &"x".repeat(BYTES / 4)));
        }
        assert_eq!(history.edits.len(), 4);
    }
}
