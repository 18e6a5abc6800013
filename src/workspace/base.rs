//! Where the work of a run starts and where its result goes.

use serde::{Deserialize, Serialize};

use crate::repository::CommitId;

/// The commit the work starts from and the branch its result goes to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    pub commit: CommitId,
    /// The branch a pull/merge request asks to be merged into.
    pub branch: String,
    /// The branch that is pushed.
    pub head_branch: String,
    /// Whether the commit holds work of an earlier run that nobody was offered yet.
    pub holds_work: bool,
}
