//! Who may steer a run: people who may write to the repository, and accounts the operator names.

use std::collections::HashMap;

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
    /// Returns how the author of `comment` is authorized.
    pub fn of(forge: &dyn Permissions, comment: &Comment) -> Self {
        match (forge.allows(comment.who()), comment.is_bot) {
            (true, _) => Self::Always,
            (false, false) => Self::IfMayWrite,
            (false, true) => Self::Never,
        }
    }

    /// Describes an author without authority, for people.
    pub fn described(self) -> &'static str {
        match self {
            Self::Never => "a bot that is not among the allowed_users",
            Self::Always | Self::IfMayWrite => "somebody who may not write to the repository",
        }
    }
}

/// Permissions that the forge reported within one look at a thread, by login and id. Without them a
/// stranger's many comments would each cost a request, and use up what the forge allows.
#[derive(Debug, Default)]
pub struct KnownRights(HashMap<(String, Option<u64>), bool>);

impl KnownRights {
    /// Drops the permissions, so that the forge is asked again.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// Returns true if the author of `comment` may steer the work, asking the forge if necessary.
    ///
    /// With `asks_anew` a known permission is not trusted, because it may have been withdrawn; an
    /// author who had none a moment ago still has none.
    pub async fn has(
        &mut self,
        forge: &dyn Permissions,
        task: &TaskId,
        comment: &Comment,
        asks_anew: bool,
    ) -> Result<bool, ForgeError> {
        match Authority::of(forge, comment) {
            Authority::Always => return Ok(true),
            Authority::Never => return Ok(false),
            Authority::IfMayWrite => {}
        }
        let who = comment.who();
        let account = (who.login.to_owned(), who.id);
        if let Some(may) = self.0.get(&account).filter(|may| !**may || !asks_anew) {
            return Ok(*may);
        }
        let may = forge.is_authorised(task, who).await?;
        self.0.insert(account, may);
        Ok(may)
    }
}
