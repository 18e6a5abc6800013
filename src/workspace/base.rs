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
}
