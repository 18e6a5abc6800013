//! Pull/merge requests.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::secret::Clean;
use crate::task::id::TaskId;

/// The branch a pull/merge request leads from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeHead {
    pub head_branch: String,
    pub base_branch: String,
    /// The commit at the head; `None` where the forge does not tell.
    pub head_commit: Option<String>,
    /// The clone address of the head branch's repository: the same one, or a fork.
    pub head_clone_url: String,
    /// The full name of that repository; `None` where it was deleted or is hidden.
    pub head_repository: Option<String>,
    pub is_fork: bool,
    /// Whether it is not meant to be merged yet.
    pub is_draft: bool,
    /// Whether the bot may push to the head branch.
    pub push: PushRight,
}

/// Whether the bot may push to the head branch of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushRight {
    /// It may: the branch is in the same repository, or in a fork whose owner allows it.
    Given,
    /// The fork's owner does not allow it, or the fork is gone.
    NotGiven,
    /// The fork's owner allows it to those who may merge, which the bot may not.
    ForMergers,
    /// A token of this kind reaches no repository of another owner.
    OutOfReach,
}

impl ChangeHead {
    /// Returns the account or group that the head branch's repository belongs to; empty where that
    /// is not known.
    pub fn owner(&self) -> &str {
        let repository = self.head_repository.as_deref().unwrap_or_default();
        repository.rsplit_once('/').map_or("", |(owner, _)| owner)
    }
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

/// The new title and text of a pull/merge request; `None` leaves one as it is.
#[derive(Debug, Clone, Default)]
pub struct ChangeEdit {
    /// The title, with the mark of a draft where the platform has drafts by their titles.
    pub title: Option<Clean>,
    pub body: Option<Clean>,
}

/// The pull/merge request that leads from a branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    pub change: Change,
    /// Whether it was opened now; false if it was open before.
    pub is_new: bool,
}

/// A pull/merge request that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub number: u64,
    pub url: String,
}

/// An open pull/merge request in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenChange {
    pub task: TaskId,
    pub title: String,
    /// The commit that it asks to be merged.
    pub head: String,
    /// The time of the last change or comment; on GitLab comments update it once a minute at most.
    pub updated_at: DateTime<Utc>,
}
