//! Who may steer a run: people who may write to the repository, and accounts the operator names.

use crate::forge::{Comment, ForgeError, Permissions};
use crate::task::id::TaskId;

/// How the author of a comment is authorized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// The operator names the account. Forges do not report the permissions of bots, so for them
    /// only the operator's list counts.
    Always,
    /// The author is obeyed if the forge reports permission to write.
    IfMayWrite,
    /// A bot that the operator does not name.
    Never,
}

impl Authority {
    pub fn whom(forge: &dyn Permissions, comment: &Comment) -> Self {
        match (forge.allows(comment.who()), comment.is_bot) {
            (true, _) => Self::Always,
            (false, false) => Self::IfMayWrite,
            (false, true) => Self::Never,
        }
    }

    /// Returns true if `comment` counts, asking the forge for permissions if necessary.
    pub async fn asked(self, forge: &dyn Permissions, task: &TaskId, comment: &Comment) -> Result<bool, ForgeError> {
        match self {
            Self::Always => Ok(true),
            Self::IfMayWrite => forge.is_authorised(task, comment.who()).await,
            Self::Never => Ok(false),
        }
    }

    /// Describes an author without authority, for people.
    pub fn nobody(self) -> &'static str {
        match self {
            Self::Never => "a bot that is not among the allowed_users",
            Self::Always | Self::IfMayWrite => "somebody who may not write to the repository",
        }
    }
}
