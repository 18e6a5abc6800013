//! A visit to a run that waits: what earlier visits have dealt with is not dealt with again.
//!
//! Each visit reads the whole thread, for commands. What only whoever resumes the run reads stays
//! unread until then: without a memory of it each visit, once a minute, would note it anew, react
//! to it, and ask the forge for the rights of its authors.

use std::collections::{BTreeMap, BTreeSet};

use crate::agent::record::message::{HeardComment, SeenComment};
use crate::forge::{Comment, CommentKey};

/// A visit to a run that waits, which passes over what earlier visits have dealt with.
pub(super) struct Visit {
    seen: BTreeMap<CommentKey, SeenComment>,
    wants_answer: bool,
}

impl Visit {
    /// Begins a visit; with `wants_answer` text that was seen before is heard again, as it may be
    /// what the run waits for.
    pub(super) fn new(seen: BTreeMap<CommentKey, SeenComment>, wants_answer: bool) -> Self {
        Self { seen, wants_answer }
    }

    /// Forgets the comments that do not exist any more.
    pub(super) fn keep(&mut self, comments: &[Comment]) {
        let there: BTreeSet<CommentKey> = comments.iter().map(|comment| comment.key).collect();
        self.seen.retain(|key, _| there.contains(key));
    }

    /// Returns true if a comment with this text was dealt with and is not to be heard again.
    pub(super) fn passes_over(&self, comment: &HeardComment) -> bool {
        self.before(comment)
            .is_some_and(|seen| !(seen.has_words && self.wants_answer))
    }

    /// Returns true if a comment with this text was noted and acknowledged as text for the model.
    pub(super) fn has_noted(&self, comment: &HeardComment) -> bool {
        self.before(comment).is_some_and(|seen| seen.has_words)
    }

    /// Records that a comment was dealt with. One with a command to be carried out is not, until
    /// that was.
    pub(super) fn saw(&mut self, comment: HeardComment, has_words: bool) {
        let seen = SeenComment {
            fingerprint: comment.fingerprint,
            has_words,
        };
        self.seen.insert(comment.key, seen);
    }

    /// Returns the comments that were dealt with by now.
    pub(super) fn end(self) -> BTreeMap<CommentKey, SeenComment> {
        self.seen
    }

    fn before(&self, comment: &HeardComment) -> Option<&SeenComment> {
        let seen = self.seen.get(&comment.key);
        seen.filter(|seen| seen.fingerprint == comment.fingerprint)
    }
}
