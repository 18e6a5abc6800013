//! Whose words count: people who may write to the repository, and the bots that the operator names.

use super::Steering;
use crate::forge::{Comment, Forge, ForgeError};
use crate::task::id::TaskId;

/// Whether somebody is heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hears {
    /// A bot that the operator names. Forges do not tell what an app may do, so the operator's word counts.
    Always,
    /// The forge is asked for their rights.
    IfMayWrite,
    /// Any other bot.
    Never,
}

impl Hears {
    pub fn whom(steering: &Steering, comment: &Comment) -> Self {
        let is_named = |bot: &String| bot.trim_start_matches('@').eq_ignore_ascii_case(&comment.author);
        match (comment.is_bot, steering.bots.iter().any(is_named)) {
            (false, _) => Self::IfMayWrite,
            (true, true) => Self::Always,
            (true, false) => Self::Never,
        }
    }

    /// Tells whether `comment` is heard, asking the forge where it has to be asked.
    pub async fn asked(self, forge: &dyn Forge, task: &TaskId, comment: &Comment) -> Result<bool, ForgeError> {
        match self {
            Self::Always => Ok(true),
            Self::IfMayWrite => forge.may_write(task, &comment.author).await,
            Self::Never => Ok(false),
        }
    }

    /// Says who it is that is not heard.
    pub fn nobody(self) -> &'static str {
        match self {
            Self::Never => "a bot that is not named in steering.bots",
            Self::Always | Self::IfMayWrite => "somebody who may not write to the repository",
        }
    }
}
