//! The forges: where tasks come from and results go to.

mod cache;
mod failure;
pub mod github;
pub mod gitlab;
mod labels;
mod marker;
mod retry;
mod source;
#[cfg(test)]
mod test_server;
mod validators;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use secrecy::SecretString;

use crate::secret::Clean;
use crate::task::id::TaskId;

/// What the program needs of a forge. GitHub and GitLab implement it.
///
/// Every call has a time-out, is retried three times on 5xx, 429, secondary limits and dropped connections (with
/// back-off, honouring `retry-after`), and every write may be repeated without doing its work twice.
#[async_trait]
pub trait Forge: Send + Sync {
    /// Returns every open item that carries the trigger label, in all configured repositories, owners and groups; all pages.
    async fn triggered(&self) -> Result<Vec<Triggered>, ForgeError>;

    /// Returns the item as it is now.
    async fn item(&self, task: &TaskId) -> Result<Item, ForgeError>;

    /// Returns all comments in order of their making, review comments included, all pages, never the bot's own.
    async fn comments(&self, task: &TaskId) -> Result<Vec<Comment>, ForgeError>;

    /// Puts a single label on the item; makes the label in the repository if it is missing. Repeating changes nothing.
    async fn add_label(&self, task: &TaskId, label: &str) -> Result<(), ForgeError>;

    /// Takes a single label off; a label that is not there is no error.
    async fn remove_label(&self, task: &TaskId, label: &str) -> Result<(), ForgeError>;

    /// Writes a comment, once: `marker` goes into the body invisibly, and before a write is repeated (or when
    /// `search_first` says that an earlier process may have written it) the bot's comments are searched for it.
    async fn comment(&self, task: &TaskId, post: &Post<'_>) -> Result<CommentId, ForgeError>;

    /// Replaces the text of a comment of the bot's own; the marker stays.
    async fn edit_comment(&self, task: &TaskId, comment: CommentId, post: &Post<'_>) -> Result<(), ForgeError>;

    /// Returns the open pull/merge request from `head` in the task's repository, if there is one.
    async fn change_from(&self, task: &TaskId, head: &str) -> Result<Option<Change>, ForgeError>;

    /// Opens a pull/merge request, or returns the open one that already leads from `head`.
    async fn open_change(&self, task: &TaskId, change: &NewChange) -> Result<Change, ForgeError>;

    /// Returns what git needs to fetch from and push to the clone address of the task's repository.
    async fn git_credentials(&self, task: &TaskId) -> Result<GitCredentials, ForgeError>;

    /// Checks the token, its rights on each configured repository and the labels, for `doctor`.
    async fn examine(&self) -> Vec<Finding>;

    /// Returns how many HTTP requests were sent so far, repeats included.
    fn requests(&self) -> u64;
}

/// An item that asks for work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Triggered {
    pub task: TaskId,
    pub title: String,
}

/// An issue, pull request or merge request as the forge shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Item {
    pub task: TaskId,
    pub title: String,
    pub body: String,
    pub author: String,
    pub labels: Vec<String>,
    pub is_open: bool,
    /// The page a person opens.
    pub url: String,
    /// Where git clones the repository from, as the forge's API gives it.
    pub clone_url: String,
    /// `None` in a repository without any commit.
    pub default_branch: Option<String>,
    /// What is asked to be merged; `None` for an issue.
    pub change: Option<ChangeHead>,
}

/// The branch a pull/merge request leads from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeHead {
    pub head_branch: String,
    pub base_branch: String,
    /// Where the head branch lives: the same repository, or a fork's clone address.
    pub head_clone_url: String,
    pub is_fork: bool,
    /// Whether the bot may push to the head branch: always in the same repository, in a fork only where its owner allows it.
    pub may_push: bool,
}

/// What a person wrote below an item.
#[derive(Debug, Clone, PartialEq)]
pub struct Comment {
    pub author: String,
    pub body: String,
    pub created_at: DateTime<Utc>,
    /// File and line, of a review comment.
    pub place: Option<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub path: String,
    /// `None` where the line is outdated or the comment is on the whole file.
    pub line: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Change {
    pub number: u64,
    pub url: String,
}

/// User name and password for git over HTTP. Given to one git process through its environment, never by URL or argument.
#[derive(Debug, Clone)]
pub struct GitCredentials {
    pub username: String,
    pub password: SecretString,
}

/// One line of `doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub subject: String,
    pub verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Good {
        detail: String,
    },
    /// Works, but should be looked at.
    Doubtful {
        detail: String,
        mend: String,
    },
    Bad {
        detail: String,
        mend: String,
    },
}

/// Why a forge did not do what it was asked. The variant says who must act.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// The operator: the token or its rights. `mend` says which right is missing and where to give it.
    #[error("{what}: {platform} answered {status}; {mend}")]
    Refused {
        platform: &'static str,
        what: String,
        status: u16,
        mend: String,
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
