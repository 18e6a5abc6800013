//! Who the bot is, and who may write.

use gitlab::api::projects::members::AllProjectMembers;

use super::rights::{RENEW, Right};
use super::{Address, GitLab, attempt, wire};
use crate::forge::ForgeError;
use crate::forge::who::Who;

/// The lowest role that may push.
const DEVELOPER: u64 = 30;

impl GitLab {
    pub(super) async fn own_name(&self) -> Result<String, ForgeError> {
        let name = self.bot().await.map(str::to_owned);
        name.map_err(|failure| attempt("asking for the bot's own account", RENEW).failed(failure))
    }

    /// One request: the members are searched for the name. Asking for the account first, for its
    /// id, would be a second one, and no safer.
    pub(super) async fn look_up_role(&self, address: Address<'_>, who: Who<'_>) -> Result<bool, ForgeError> {
        let user = who.login;
        // A deleted account has no name, and a search for nothing finds everybody.
        if user.is_empty() {
            return Ok(false);
        }
        let mut members = AllProjectMembers::builder();
        let found = self
            .client
            .list(members.project(address.project).query(user).build())
            .await;
        let found: Vec<wire::Member> = found.map_err(|failure| {
            let what = format!("asking whether {user} may write to {}", address.project);
            attempt(&what, &Right::Read.remedy(address.project)).failed(failure)
        })?;
        Ok(found
            .iter()
            .any(|member| is_writer(member, user) && !who.is_another(member.id)))
    }
}

/// The search finds names that only contain the wanted one, and real names and addresses too.
fn is_writer(member: &wire::Member, user: &str) -> bool {
    let is_active = |state: &Option<String>| state.as_deref().is_none_or(|state| state == "active");
    member.username.eq_ignore_ascii_case(user)
        && member.access_level >= DEVELOPER
        && is_active(&member.state)
        && is_active(&member.membership_state)
}
