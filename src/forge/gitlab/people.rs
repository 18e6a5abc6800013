//! The bot's account, and the rights of others.

use async_trait::async_trait;
use gitlab::api::projects::members::AllProjectMembers;
use gitlab::api::users::CurrentUser;

use crate::forge::gitlab::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::item::account::Account;
use crate::forge::platform::PeopleApi;

/// The lowest role that may push.
pub(super) const DEVELOPER: u64 = 30;

#[async_trait]
impl PeopleApi for Api {
    async fn bot(&self) -> Result<&str, Failure> {
        self.own_login().await
    }

    /// Asks GitLab with one request, which searches the members for the name. Asking for the
    /// account's id first would take a second one, and be no safer.
    async fn may_write(&self, repository: &str, who: Account<'_>) -> Result<bool, Failure> {
        let mut members = AllProjectMembers::builder();
        let members = members.project(repository).query(who.login).build();
        let found: Vec<schema::Member> = self.client.list(members).await?;
        Ok(found
            .iter()
            .any(|member| is_writer(member, who.login) && !who.is_another(member.id)))
    }

    /// A role in the project or one of its groups is told with the project. A group that was
    /// invited may give a higher one, which only the members tell.
    async fn may_push(&self, repository: &str) -> Result<bool, Failure> {
        let project = self.project(repository).await?;
        if project.permissions.level().is_none_or(|level| level >= DEVELOPER) {
            return Ok(true);
        }
        let login = self.own_login().await?;
        self.may_write(repository, Account { login, id: None }).await
    }
}

impl Api {
    /// Returns the user name that the bot's own notes carry.
    pub(super) async fn own_login(&self) -> Result<&str, Failure> {
        let name = self.bot.get_or_try_init(|| async {
            let user: schema::User = self.client.ask(CurrentUser::builder().build()).await?;
            Ok(user.username)
        });
        name.await.map(String::as_str)
    }
}

/// Tells whether a found member is `user` and may push. The search also finds longer names, real
/// names and addresses.
fn is_writer(member: &schema::Member, user: &str) -> bool {
    let is_active = |state: &Option<String>| state.as_deref().is_none_or(|state| state == "active");
    member.username.eq_ignore_ascii_case(user)
        && member.access_level >= DEVELOPER
        && is_active(&member.state)
        && is_active(&member.membership_state)
}
