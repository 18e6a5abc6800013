//! Whose words count: people who may write to the repository, and whom the operator names.

use crate::forge::{Comment, ForgeError, Permissions};
use crate::task::id::TaskId;

/// Whether somebody is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Authority {
    /// The operator names them. Of bots forges do not tell what they may do, so only that word
    /// counts.
    Always,
    /// The forge is asked for their rights.
    IfMayWrite,
    /// Any other bot.
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

    /// Tells whether `comment` is heard, asking the forge where it has to be asked.
    pub async fn asked(self, forge: &dyn Permissions, task: &TaskId, comment: &Comment) -> Result<bool, ForgeError> {
        match self {
            Self::Always => Ok(true),
            Self::IfMayWrite => forge.is_authorised(task, comment.who()).await,
            Self::Never => Ok(false),
        }
    }

    /// Says who it is that is not heard.
    pub fn nobody(self) -> &'static str {
        match self {
            Self::Never => "a bot that is not among the allowed_users",
            Self::Always | Self::IfMayWrite => "somebody who may not write to the repository",
        }
    }
}
