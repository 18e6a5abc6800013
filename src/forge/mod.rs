//! The forges: where tasks come from and results go to.

pub mod allowed_users;
mod cache;
mod clone_address;
mod comment_key;
mod doubts;
mod edit;
mod failure;
pub mod github;
pub mod gitlab;
mod labels;
mod listing;
mod retry;
mod source;
#[cfg(test)]
mod test_server;
mod validators;
pub mod watched;
pub mod who;

use std::collections::BTreeSet;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::finding::Finding;
use crate::secret::Clean;
use crate::task::id::TaskId;
pub use comment_key::{CommentKey, CommentKind};
pub use edit::{Edit, Edited};
use watched::{Checks, OpenChange};
use who::Who;

/// What the program needs of a forge. GitHub and GitLab implement it.
///
/// Every call has a time-out, is retried three times on 5xx, 429, secondary limits and dropped
/// connections (with back-off, honouring `retry-after`), and every write may be repeated without
/// doing its work twice.
#[async_trait]
pub trait Forge: Send + Sync {
    /// Returns every open item that carries the trigger label, in all configured repositories,
    /// owners and groups; all pages.
    async fn triggered(&self) -> Search;

    /// Returns the item as it is now.
    async fn item(&self, task: &TaskId) -> Result<Item, ForgeError>;

    /// Returns all comments in order of their making: those on the changes and the reviews' own
    /// texts included, all pages, never the bot's own, never what the forge wrote itself, never
    /// internal notes of a repository that more people can read. Looking again costs next to
    /// nothing: unchanged pages are only confirmed.
    async fn comments(&self, task: &TaskId) -> Result<Vec<Comment>, ForgeError>;

    /// Tells whether somebody is to be obeyed: they may write to the task's repository, by
    /// themselves or through a team or group, or the configuration's `allowed_users` names them.
    /// Somebody whom the forge does not know is not.
    async fn is_authorised(&self, task: &TaskId, who: Who<'_>) -> Result<bool, ForgeError>;

    /// Tells whether the configuration's `allowed_users` names somebody, by login or by id.
    fn allows(&self, who: Who<'_>) -> bool;

    /// Tells who put the trigger label on, the last time; `None` where the item's history does not
    /// tell (yet).
    async fn triggered_by(&self, task: &TaskId) -> Result<Option<Deed>, ForgeError>;

    /// Returns every change of the item's words or of its head branch since `since`, as far as the
    /// forge tells of them. The newest alone would not do: it hides those before it.
    async fn edits_since(&self, item: &Item, since: DateTime<Utc>) -> Result<Vec<Edit>, ForgeError>;

    /// Puts the bot's reaction below a comment, once. One that is there already is no error, nor is
    /// a comment that is gone, nor one of a kind that takes none (a GitHub review's own text): then
    /// nothing is done.
    async fn react(&self, task: &TaskId, comment: CommentKey, reaction: Reaction) -> Result<(), ForgeError>;

    /// Returns the name of the bot's account.
    async fn bot_name(&self) -> Result<String, ForgeError>;

    /// Puts a single label on the item; makes the label in the repository if it is missing.
    /// Repeating changes nothing.
    async fn add_label(&self, task: &TaskId, label: &str) -> Result<(), ForgeError>;

    /// Takes a single label off; a label that is not there is no error.
    async fn remove_label(&self, task: &TaskId, label: &str) -> Result<(), ForgeError>;

    /// Writes a comment, once: `marker` goes into the body invisibly, and before a write is
    /// repeated (or when `search_first` says that an earlier process may have written it) the bot's
    /// comments are searched for it.
    async fn comment(&self, task: &TaskId, post: &Post<'_>) -> Result<CommentId, ForgeError>;

    /// Replaces the text of a comment of the bot's own; the marker stays.
    async fn edit_comment(&self, task: &TaskId, comment: CommentId, post: &Post<'_>) -> Result<(), ForgeError>;

    /// Returns the open pull/merge request from `head` in the task's repository, if there is one.
    async fn change_from(&self, task: &TaskId, head: &str) -> Result<Option<Change>, ForgeError>;

    /// Opens a pull/merge request, or returns the open one that already leads from `head`.
    async fn open_change(&self, task: &TaskId, change: &NewChange) -> Result<Change, ForgeError>;

    /// Returns those of `changes`, pull/merge requests of one repository, that are open; unchanged
    /// lists are only confirmed.
    async fn open_changes(&self, changes: &[TaskId]) -> Result<Vec<OpenChange>, ForgeError>;

    /// Returns what the checks of a change's commit say, with the logs of those that failed and are
    /// not among `known`. A token that may not read checks sees none, and one that may not read
    /// logs sees the names alone.
    async fn checks(&self, change: &TaskId, commit: &str, known: &BTreeSet<String>) -> Result<Checks, ForgeError>;

    /// Returns what git needs to fetch from and push to the clone address of the task's repository.
    async fn git_credentials(&self, task: &TaskId) -> Result<GitCredentials, ForgeError>;

    /// Checks the token, its rights on each configured repository and the labels, for `doctor`.
    async fn examine(&self) -> Vec<Finding>;

    /// Returns how many HTTP requests were sent so far, repeats included.
    fn requests(&self) -> u64;

    /// Takes over the answers that an earlier process was given, for the forge to confirm.
    fn recall(&self, answers: Vec<KnownAnswer>);

    /// Returns the answers that the next process should know, if they are others than at the last
    /// call. They hold nothing that people wrote.
    fn news(&self) -> Option<Vec<KnownAnswer>>;
}

/// An answer that a forge can confirm by its tag instead of sending it again.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct KnownAnswer {
    path: String,
    tag: String,
    body: String,
}

/// What a search for labelled items brought. A source that cannot be read does not hide the items
/// of the others.
#[derive(Debug, Default)]
pub struct Search {
    pub items: Vec<Triggered>,
    /// One for each source that could not be read.
    pub errors: Vec<ForgeError>,
}

/// An item that asks for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triggered {
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

/// Why a forge did not do what it was asked. The variant says who must act.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// The operator: the token or its rights. `remedy` says which right is missing and where to give
    /// it.
    #[error("{what}: {platform} answered {status}; {remedy}")]
    Refused {
        platform: &'static str,
        what: String,
        status: u16,
        remedy: String,
    },
    /// Nobody: the item was deleted or moved away.
    #[error("{what}: it does not exist any more")]
    Gone { what: String },
    /// Time: try again then.
    #[error("{what}: rate limit reached until {until}")]
    RateLimited { what: String, until: DateTime<Utc> },
    /// Time: the forge did not answer, or only with 5xx, after all retries.
    #[error("{what}: {reason}")]
    Unavailable { what: String, reason: String },
    /// The developers: the forge said something this program did not expect.
    #[error("{what}: {reason}")]
    Unexpected { what: String, reason: String },
}
