//! Who the bot is, and who may write.

use super::client::{encoded, path};
use super::installations::Rights;
use super::rights::{RENEW, Right};
use super::{Address, GitHub, attempt, wire};
use crate::forge::ForgeError;
use crate::forge::failure::Failure;
use crate::forge::who::Who;

impl GitHub {
    pub(super) async fn own_name(&self) -> Result<String, ForgeError> {
        let login = self.bot().await.map(str::to_owned);
        login.map_err(|failure| attempt("asking for the bot's own account", RENEW).failed(failure))
    }

    /// One request, and one that GitHub only confirms when asked again: a role that was taken away
    /// counts at once.
    pub(super) async fn look_up_role(&self, address: Address<'_>, who: Who<'_>) -> Result<bool, ForgeError> {
        let user = who.login;
        // A deleted account has no name, and the path without one would be that of something else.
        if user.is_empty() {
            return Ok(false);
        }
        let rights = Rights::Repository(address.repository);
        let at = path(
            address.repository,
            &format!("/collaborators/{}/permission", encoded(user)),
        );
        let asked = match self.client.get::<wire::Access>(rights, &at).await {
            // Nobody has this name, unless it is the repository that the token may not see.
            Err(failure) if failure.is_missing() => match self.repository(address.repository).await {
                Ok(_) => return Ok(false),
                Err(_) => Err(failure),
            },
            asked => asked,
        };
        let may = |access: wire::Access| {
            let found = access.user.as_ref().and_then(|user| user.id);
            may_write(&access) && !who.is_another(found)
        };
        asked.map(may).map_err(|failure: Failure| {
            let what = format!("asking whether {user} may write to {}", address.repository);
            attempt(&what, &Right::ReadRoles.remedy(address.repository)).failed(failure)
        })
    }
}

/// Compatible servers tell the role `maintain` as it is, where GitHub says `write`.
fn may_write(access: &wire::Access) -> bool {
    matches!(access.permission.as_str(), "admin" | "maintain" | "write")
}
