//! Comments and reactions.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::account::Account;
use super::comment_key::CommentKey;
use crate::secret::Clean;

/// A comment on an item by a person.
#[derive(Debug, Clone, PartialEq)]
pub struct Comment {
    pub key: CommentKey,
    pub author: String,
    pub author_id: Option<u64>,
    pub body: String,
    pub created_at: DateTime<Utc>,
    /// The time of the last change. It changes with an edit, but only another body proves one:
    /// GitLab also changes it with reactions (the bot's too), and GitHub counts whole seconds and
    /// has no such time for a review's own text.
    pub updated_at: DateTime<Utc>,
    /// File and line; `None` if the comment is not on the changes.
    pub place: Option<Place>,
    /// The remark that began the thread, of a later one in it, where the forge tells.
    pub thread: Option<CommentKey>,
    /// Whether it belongs to an approving review, which asks for nothing. GitLab does not report
    /// it.
    pub is_approval: bool,
    /// Whether a program wrote it.
    pub is_bot: bool,
}

/// The bot's reaction to a comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// Eyes: it was read and is taken up.
    Seen,
    /// A thumb up: what it asks for was done.
    Done,
    /// A confused face: what it asks for is not done.
    Refused,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub path: String,
    /// `None` where the line is outdated or the comment is on the whole file.
    pub line: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommentId(pub u64);

/// A comment to be written.
#[derive(Debug, Clone, Copy)]
pub struct Post<'a> {
    /// Identifies the content of the comment, e.g. `019a…:progress`. Letters, digits, `:`, `-`.
    pub marker: &'a str,
    pub body: &'a Clean,
    /// Whether the comment may exist already, because an earlier process may have written it.
    pub search_first: bool,
}

impl Comment {
    pub fn who(&self) -> Account<'_> {
        Account {
            login: &self.author,
            id: self.author_id,
        }
    }
}
