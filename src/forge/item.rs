//! What is read from and written to a forge, in the same words for all of them.

use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use super::{CommentKey, ForgeError};
use crate::secret::Clean;
use crate::task::id::TaskId;

/// What a search for labelled items brought. A source that cannot be read does not hide the items
/// of the others.
#[derive(Debug, Default)]
pub struct Search {
    pub items: Vec<TriggeredItem>,
    /// One for each source that could not be read.
    pub errors: Vec<ForgeError>,
}

/// An item that asks for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TriggeredItem {
    pub task: TaskId,
    pub title: String,
}

/// Who did something to an item, and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deed {
    /// Empty where the account was deleted.
    pub by: String,
    #[serde(default)]
    pub by_id: Option<u64>,
    pub at: DateTime<Utc>,
}

/// An issue, pull request or merge request as the forge shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub task: TaskId,
    pub title: String,
    pub body: String,
    pub author: String,
    pub author_id: Option<u64>,
    pub labels: Vec<String>,
    pub assignees: Vec<String>,
    pub is_open: bool,
    /// Of a pull/merge request that is not open any more.
    pub is_merged: bool,
    /// Moves with edits and labels. With comments GitLab moves it once a minute at most: only
    /// `comments` tells of all.
    pub updated_at: DateTime<Utc>,
    /// The page a person opens.
    pub url: String,
    /// Where git clones the repository from, as the forge's API gives it.
    pub clone_url: String,
    /// `None` in a repository without any commit.
    pub default_branch: Option<String>,
    /// What is asked to be merged; `None` for an issue.
    pub change: Option<ChangeHead>,
    pub discretion: Discretion,
}

/// What may be shown of an item to people who can read the repository but not the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discretion {
    /// Everything: whoever can read the repository can read the item.
    NotNeeded,
    /// Changes of files, but none of the item's words and none of what a model says about it.
    NeutralNames,
    /// Nothing, so the item is not worked on.
    Refused,
}

impl Item {
    /// Says why it is not open.
    pub fn why_closed(&self) -> &'static str {
        if self.is_merged {
            "it was merged"
        } else {
            "it was closed"
        }
    }
}

/// The branch a pull/merge request leads from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeHead {
    pub head_branch: String,
    pub base_branch: String,
    /// The commit at the head; `None` where the forge does not tell.
    pub head_commit: Option<String>,
    /// Where the head branch lives: the same repository, or a fork's clone address.
    pub head_clone_url: String,
    /// The full name of that repository; `None` where it was deleted or is hidden.
    pub head_repository: Option<String>,
    pub is_fork: bool,
    /// Whether the bot may push to the head branch: always in the same repository, in a fork only
    /// where its owner allows it.
    pub may_push: bool,
}

impl ChangeHead {
    /// Returns the account or group that the head branch's repository belongs to; empty where that
    /// is not known.
    pub fn owner(&self) -> &str {
        let repository = self.head_repository.as_deref().unwrap_or_default();
        repository.rsplit_once('/').map_or("", |(owner, _)| owner)
    }
}

/// What a person wrote below an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Comment {
    pub key: CommentKey,
    pub author: String,
    pub author_id: Option<u64>,
    pub body: String,
    pub created_at: DateTime<Utc>,
    /// Moves with an edit, but only another body proves one: GitLab moves it with reactions as well
    /// (the bot's too), GitHub counts whole seconds and has no such time for a review's own text.
    pub updated_at: DateTime<Utc>,
    /// File and line, of a comment on the changes.
    pub place: Option<Place>,
    /// Belongs to a review that approves: it asks for nothing. GitLab does not tell.
    pub is_approval: bool,
    /// Written by a program.
    pub is_bot: bool,
}

/// What the bot says about a comment without words.
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
    /// Unique for what the comment says, e.g. `019a…:progress`. Letters, digits, `:`, `-`.
    pub marker: &'a str,
    pub body: &'a Clean,
    /// True where the comment may exist already because an earlier process may have written it.
    pub search_first: bool,
}

/// A pull/merge request to be opened.
#[derive(Debug, Clone)]
pub struct NewChange {
    pub title: Clean,
    pub body: Clean,
    pub head: String,
    pub base: String,
    pub is_draft: bool,
}

/// A pull/merge request that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub number: u64,
    pub url: String,
}

/// User name and password for git over HTTP. Given to one git process through its environment,
/// never by URL or argument.
#[derive(Debug, Clone)]
pub struct GitCredentials {
    pub username: String,
    pub password: SecretString,
    /// Made a moment ago: not all of the forge may know it yet.
    pub is_new: bool,
}
