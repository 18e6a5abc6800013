//! The data that are read from and written to forges, the same for all of them.

pub(crate) mod address;
pub mod account;
mod comment_key;
mod comment;
mod event;
pub mod change;
pub mod checks;

use account::Account;
use chrono::{DateTime, Utc};
use secrecy::SecretString;

use super::ForgeError;
use crate::certificates::Trust;
use crate::secret::Clean;
use crate::task::id::TaskId;
pub use change::{Change, ChangeEdit, ChangeHead, NewChange, Opened, PushRight};
pub use comment::{Comment, CommentId, Place, Post, Reaction};
pub use comment_key::{CommentKey, CommentKind};
pub use event::{Edit, EditedPart, ItemEvent};

/// Why an issue is not open.
pub const ISSUE_CLOSED: &str = "this issue was closed";
/// Why a pull/merge request is not open that can be opened again.
pub const REQUEST_CLOSED: &str = "this request was closed";
/// Why a pull/merge request is not open that cannot be opened again.
pub const REQUEST_MERGED: &str = "this request was merged";

/// The result of a search. A source that cannot be read does not hide the items of the others.
#[derive(Debug, Default)]
pub struct Search {
    pub items: Vec<FoundItem>,
    /// One error for each source that could not be read.
    pub errors: Vec<ForgeError>,
}

/// An open item that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundItem {
    pub task: TaskId,
    pub title: String,
    /// As `Item::updated_at`, but lists may be some seconds old.
    pub updated_at: DateTime<Utc>,
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
    /// Whether a closed pull/merge request was merged.
    pub is_merged: bool,
    pub created_at: DateTime<Utc>,
    /// The time of the last change. Edits and labels change it; comments do so on GitLab once a
    /// minute at most, so only `comments` shows them all.
    pub updated_at: DateTime<Utc>,
    /// The page a person opens.
    pub url: String,
    /// The clone address for git, as the forge's API gives it.
    pub clone_url: String,
    /// `None` in a repository without any commit.
    pub default_branch: Option<String>,
    /// The head of a pull/merge request; `None` for an issue.
    pub change: Option<ChangeHead>,
    pub discretion: Discretion,
    /// Whether more people than its members can read the repository. What does not say so counts as
    /// open.
    pub is_public: bool,
}

/// An issue to open.
#[derive(Debug, Clone)]
pub struct NewIssue<'a> {
    pub title: &'a Clean,
    /// With the marker by which it is found again.
    pub post: Post<'a>,
}

/// An issue that the bot opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenedIssue {
    pub task: TaskId,
    /// The page a person opens.
    pub url: String,
}

/// How much of an item may be shown to people who can read the repository, but not the item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Discretion {
    /// Everything: whoever can read the repository can read the item.
    NotNeeded,
    /// File changes, but none of the item's text and none of the model's.
    NeutralNames,
    /// Nothing: the item is not worked on.
    Refused,
}

impl Item {
    pub fn who(&self) -> Account<'_> {
        Account {
            login: &self.author,
            id: self.author_id,
        }
    }

    /// Returns why the item is not open, as a clause that says what kind of item it is; one of
    /// [`ISSUE_CLOSED`], [`REQUEST_CLOSED`] and [`REQUEST_MERGED`].
    pub fn why_closed(&self) -> &'static str {
        match (self.is_merged, &self.change) {
            (true, _) => REQUEST_MERGED,
            (false, Some(_)) => REQUEST_CLOSED,
            (false, None) => ISSUE_CLOSED,
        }
    }
}

/// The address of a repository and the credentials that git needs for it.
#[derive(Debug, Clone)]
pub struct GitRemote {
    /// The repository with its platform, for people.
    pub subject: String,
    /// The repository's present name: one that was renamed answers to its earlier names as well.
    pub repository: String,
    pub url: String,
    pub credentials: GitCredentials,
    /// Whether its pages have the addresses of GitLab's.
    pub is_gitlab: bool,
}

/// User name and password for git over HTTP. They are given to one git process through its
/// environment, never in a URL or an argument.
#[derive(Debug, Clone)]
pub struct GitCredentials {
    pub username: String,
    pub password: SecretString,
    /// Whether the password is so new that some of the forge's servers may not know it.
    pub is_new: bool,
    /// The certificates that git's connections to the forge trust.
    pub trust: Trust,
}
