//! The forges: where tasks come from and results go to.
//!
//! Callers see [`Forge`], which is made of six narrow traits. [`host`] implements them once, for
//! every platform: it explains failures, and does what all platforms do in the same way. What a
//! platform does in its own way stands behind the traits of [`platform`], one for each topic, which
//! the files of `github` and `gitlab` implement.

// Reading order is import order.
mod error; // why a forge did not do what it was asked, for its callers
mod http; // requests: failures, repeats, pages, conditional requests
pub mod item; // issues, changes, comments and people, in the same words for all platforms
pub mod settings; // what the configuration says of every host
mod platform; // the traits of one platform
mod caveats; // what `doctor` finds on every platform
mod host; // a forge of any platform
pub mod github;
pub mod gitlab;
#[cfg(test)]
mod test_server;

use std::collections::BTreeSet;

use async_trait::async_trait;
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};

use crate::finding::Finding;
use crate::picture::Picture;
use crate::task::id::{HostName, TaskId};
use crate::task::labels::Labels;
pub use error::ForgeError;
pub use host::Host;
pub use http::{KnownAnswer, Traffic};
use item::account::Account;
use item::change::OpenChange;
use item::checks::Checks;
pub use item::{
    Change, ChangeEdit, ChangeHead, Comment, CommentId, CommentKey, CommentKind, Discretion, Edit, EditedPart,
    FoundItem, GitCredentials, GitRemote, Item, ItemEvent, NewChange, NewIssue, Opened, OpenedIssue, Place, Post,
    PushRight, Reaction, Search,
};
use settings::trigger::Trigger;

/// How far a forge's clock may be behind this machine's.
pub const CLOCKS_DIFFER: TimeDelta = TimeDelta::minutes(5);

/// Where tasks come from, and where people are told of them: items, comments and labels.
///
/// Every call has a time-out, is retried three times on 5xx, 429, secondary limits and dropped
/// connections (with back-off, honouring `retry-after`), and every write may be repeated without
/// doing its work twice. The same holds for the other traits.
#[async_trait]
pub trait TaskSource: Send + Sync {
    /// Returns every open item that carries the trigger label, in all configured repositories,
    /// owners and groups; all pages.
    async fn triggered(&self) -> Search;

    /// Returns every open item that something happened to since then, in the same places. A comment
    /// that follows another change within a minute may not count as one.
    async fn touched_since(&self, since: DateTime<Utc>) -> Search;

    /// Returns the current state of the item.
    async fn item(&self, task: &TaskId) -> Result<Item, ForgeError>;

    /// Returns all comments in order of their making: those on the changes and the reviews' own
    /// texts included, all pages, never the bot's own, never what the forge wrote itself, never
    /// internal notes of an item that more people can read. Looking again costs next to nothing:
    /// unchanged pages are only confirmed.
    async fn comments(&self, task: &TaskId) -> Result<Vec<Comment>, ForgeError>;

    /// Returns who set the trigger label last, and when; `None` if the item's history does not show
    /// it (yet), or shows that the label was removed since.
    async fn triggered_by(&self, task: &TaskId) -> Result<Option<ItemEvent>, ForgeError>;

    /// Tells who assigned the item to the bot's account, the last time; `None` where the item's
    /// history does not tell (yet).
    async fn assigned_by(&self, task: &TaskId) -> Result<Option<ItemEvent>, ForgeError>;

    /// Returns every edit of the item's text or head branch since `since` that the forge reports.
    /// The newest alone would hide the earlier ones.
    async fn edits_since(&self, item: &Item, since: DateTime<Utc>) -> Result<Vec<Edit>, ForgeError>;

    /// Adds the bot's reaction to a comment, once. It is no error if the reaction exists, the
    /// comment is gone, or comments of its kind take none (a GitHub review's own text).
    async fn react(&self, task: &TaskId, comment: CommentKey, reaction: Reaction) -> Result<(), ForgeError>;

    /// Fetches a picture by the address in the text of the item or of a comment, from the forge's
    /// own servers; `None` where it lies elsewhere. Its bytes are a stranger's.
    async fn picture(&self, task: &TaskId, address: &str) -> Result<Option<Bytes>, ForgeError>;

    /// Puts a label on the item; creates it in the repository if it is missing. Repeating changes
    /// nothing.
    async fn add_label(&self, task: &TaskId, label: &str) -> Result<(), ForgeError>;

    /// Removes a label; it is no error if it is not there.
    async fn remove_label(&self, task: &TaskId, label: &str) -> Result<(), ForgeError>;

    /// Writes a comment, once: `marker` goes into the body invisibly, and before a write is
    /// repeated (or when `search_first` says that an earlier process may have written it) the bot's
    /// comments are searched for it.
    async fn comment(&self, task: &TaskId, post: &Post<'_>) -> Result<CommentId, ForgeError>;

    /// Returns the full name that the task's repository has now: a renamed one answers to its old
    /// name as well. `None` if there is none to be seen by the name in the task's id.
    async fn repository_now(&self, task: &TaskId) -> Result<Option<String>, ForgeError>;

    /// Tells whether the configuration names a repository as one that is worked on.
    fn works_on(&self, repository: &str) -> bool;

    /// Opens an issue, once, as `comment` writes a comment.
    async fn open_issue(&self, repository: &str, issue: &NewIssue<'_>) -> Result<OpenedIssue, ForgeError>;

    /// Puts a picture where the repository's issues can show it; returns its address in their
    /// texts, or `None` where the forge has no way. Repeating puts another one there.
    async fn attach(&self, repository: &str, picture: &Picture) -> Result<Option<String>, ForgeError>;

    /// Replaces the text of a comment of the bot's own; the marker stays.
    async fn edit_comment(&self, task: &TaskId, comment: CommentId, post: &Post<'_>) -> Result<(), ForgeError>;
}

/// The bot's account and its rights, and those of the people who have it work.
#[async_trait]
pub trait Permissions: Send + Sync {
    /// Returns the name of the bot's account.
    async fn bot_name(&self) -> Result<String, ForgeError>;

    /// Tells whether an account may steer runs: it may write to the task's repository, by itself or
    /// through a team or group, or is in the configuration's `allowed_users`. An account that the
    /// forge does not know may not.
    async fn is_authorised(&self, task: &TaskId, who: Account<'_>) -> Result<bool, ForgeError>;

    /// Tells whether an account is in the configuration's `allowed_users`, by login or by id.
    fn allows(&self, who: Account<'_>) -> bool;

    /// Returns what gives the bot's account the right to push to the task's repository where it
    /// lacks it; `None` where it may push, or the forge does not tell.
    async fn missing_push_right(&self, task: &TaskId) -> Result<Option<String>, ForgeError>;
}

/// Where code lives: pull/merge requests, their checks, and what git needs.
#[async_trait]
pub trait CodeHost: Send + Sync {
    /// Returns the open pull/merge request from `head` in the task's repository, if there is one.
    async fn change_from(&self, task: &TaskId, head: &str) -> Result<Option<Change>, ForgeError>;

    /// Opens a pull/merge request, or returns the open one from the same `head`.
    async fn open_change(&self, task: &TaskId, change: &NewChange) -> Result<Opened, ForgeError>;

    /// Makes an open change with this title a draft, or ready for review. Returns its title after
    /// that: some platforms know drafts by their titles. Repeating changes nothing.
    async fn set_draft(&self, change: &TaskId, title: &str, is_draft: bool) -> Result<String, ForgeError>;

    /// Replaces the title or the text of a change, or both.
    async fn edit_change(&self, change: &TaskId, edit: &ChangeEdit) -> Result<(), ForgeError>;

    /// Assigns a change to these accounts. Returns those that the forge does not take.
    async fn assign(&self, change: &TaskId, people: &[String]) -> Result<Vec<String>, ForgeError>;

    /// Asks these accounts, or teams, to review a change. Returns those that the forge does not
    /// take.
    async fn ask_for_review(&self, change: &TaskId, people: &[String]) -> Result<Vec<String>, ForgeError>;

    /// Writes a reply in the thread of a remark on a line of a change, once, as `comment` does.
    async fn reply(&self, change: &TaskId, thread: CommentKey, post: &Post<'_>) -> Result<CommentId, ForgeError>;

    /// Returns the id of the pull/merge request `number` in the task's repository; `None` for a
    /// task of another host.
    fn change_id(&self, task: &TaskId, number: u64) -> Option<TaskId>;

    /// Tells whether changes come to a branch of the task's repository only by being merged, or
    /// from fewer people than may write. An exception for the bot does not count.
    async fn is_protected(&self, task: &TaskId, branch: &str) -> Result<bool, ForgeError>;

    /// Returns the open ones of `changes`, which are pull/merge requests of one repository;
    /// unchanged lists are only confirmed.
    async fn open_changes(&self, changes: &[TaskId]) -> Result<Vec<OpenChange>, ForgeError>;

    /// Returns the state of a commit's checks, with the logs of those that failed and are not in
    /// `known`. A token that may not read checks sees none, and one that may not read logs sees
    /// only the names.
    async fn checks(&self, change: &TaskId, commit: &str, known: &BTreeSet<String>) -> Result<Checks, ForgeError>;

    /// Returns what git needs to fetch from and push to the clone address of the task's repository.
    async fn git_credentials(&self, task: &TaskId) -> Result<GitCredentials, ForgeError>;

    /// Returns what git needs to fetch from another repository of the forge, by its full name.
    async fn git_credentials_to_read(&self, repository: &str) -> Result<GitCredentials, ForgeError>;
}

/// The forge's part in claims on items, by which installations without a shared store keep from
/// working on the same ones.
#[async_trait]
pub trait ClaimHost: Send + Sync {
    /// Returns the time by the forge's clock.
    async fn now(&self, task: &TaskId) -> Result<DateTime<Utc>, ForgeError>;

    /// Returns the clone address of the repository that the task's item lives in, and what git
    /// needs to push to it.
    async fn home(&self, task: &TaskId) -> Result<(String, GitCredentials), ForgeError>;
}

/// The forge's part in the examination by `doctor`.
#[async_trait]
pub trait Diagnostics: Send + Sync {
    /// Checks the token, its rights on each configured repository and the labels.
    async fn examine(&self) -> Vec<Finding>;

    /// Returns what git needs for each configured repository that can be read, with a subject for
    /// the findings. For all repositories of an owner, it is one with a labelled item.
    async fn git_remotes(&self) -> Vec<GitRemote>;

    /// Returns what git needs for one repository; `None` where it cannot be read.
    async fn git_remote(&self, repository: &str) -> Option<GitRemote>;

    /// Returns what was asked of it so far.
    fn traffic(&self) -> Traffic;
}

/// Answers that one process leaves to the next, so that it need not fetch them in full.
pub trait AnswerMemory: Send + Sync {
    /// Takes over the answers that an earlier process received, for the forge to confirm.
    fn recall(&self, answers: Vec<KnownAnswer>);

    /// Returns the answers for the next process, if they have changed since the last call. They
    /// contain no text by people.
    fn news(&self) -> Option<Vec<KnownAnswer>>;
}

/// A configured forge with all that it does.
pub trait Forge: TaskSource + Permissions + CodeHost + ClaimHost + Diagnostics + AnswerMemory {
    /// Returns the name before the `:` in the ids of the forge's tasks.
    fn name(&self) -> &HostName;

    /// Returns the names of the forge's labels.
    fn labels(&self) -> &Labels;

    /// Returns what starts work on it.
    fn trigger(&self) -> &Trigger;
}
