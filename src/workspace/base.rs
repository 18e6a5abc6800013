//! Start and destination of the work of a run.

use serde::{Deserialize, Serialize};

use crate::repository::CommitId;

/// The commit that the work starts from, and the branch that its result goes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    pub commit: CommitId,
    /// The target branch of a pull/merge request.
    pub branch: String,
    /// The branch that is pushed.
    pub head_branch: String,
    /// Whether the commit contains work of an earlier run that was not delivered yet.
    pub holds_work: bool,
    /// The commit before all work of the program on the branch, where earlier runs have worked on
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_work: Option<CommitId>,
    /// The commit that the pushed branch is at, where that lacks the earlier work in `commit`:
    /// unfinished work on a pull/merge request is on a branch beside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pushed_up_to: Option<CommitId>,
}

impl Base {
    /// Returns the commit from which on the pushed branch lacks the result.
    pub fn pushed_up_to(&self) -> &CommitId {
        self.pushed_up_to.as_ref().unwrap_or(&self.commit)
    }

    /// Returns the commit before all work of the program that comes with the result. Tests that
    /// pass there and fail on the result are its fault, whichever run broke them.
    pub fn before_work(&self) -> &CommitId {
        self.before_work.as_ref().unwrap_or(&self.commit)
    }
}
