//! The bot's account, and the rights of others.

use async_trait::async_trait;

use crate::forge::github::http::TokenScope;
use crate::forge::github::http::{encoded, path};
use crate::forge::github::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::item::account::Account;
use crate::forge::platform::PeopleApi;

#[async_trait]
impl PeopleApi for Api {
    async fn bot(&self) -> Result<&str, Failure> {
        self.own_login().await
    }

    /// Asks GitHub each time, with a request that it usually only confirms: a role that was taken
    /// away counts at once.
    async fn may_write(&self, repository: &str, who: Account<'_>) -> Result<bool, Failure> {
        let at = path(repository, &format!("/collaborators/{}/permission", encoded(who.login)));
        let asked = self
            .client
            .get::<schema::Access>(TokenScope::Repository(repository), &at)
            .await;
        let access = match asked {
            // Nobody has this name, unless it is the repository that the token may not see.
            Err(failure) if failure.is_missing() => {
                return self.repository(repository).await.map(|_| false).map_err(|_| failure);
            }
            asked => asked?,
        };
        let found = access.user.as_ref().and_then(|user| user.id);
        Ok(may_write(&access) && !who.is_another(found))
    }

    async fn may_push(&self, repository: &str) -> Result<bool, Failure> {
        // An App's answer has no permissions of a user.
        let may = |push: Option<bool>| self.is_app || push != Some(false);
        if may(self.repository(repository).await?.permissions.push) {
            return Ok(true);
        }
        // The right may have been given since it was read.
        let found = self.ask_repository(repository).await?;
        Ok(may(self.repositories.learn(repository, found).permissions.push))
    }
}

impl Api {
    /// Returns the login that the bot's own comments carry.
    pub(super) async fn own_login(&self) -> Result<&str, Failure> {
        let login = self.bot.get_or_try_init(|| async {
            if self.is_app {
                let app: schema::AppItself = self.client.get_own("/app").await?;
                return Ok(format!("{}[bot]", app.slug));
            }
            let user: schema::User = self.client.get_own("/user").await?;
            Ok(user.login)
        });
        login.await.map(String::as_str)
    }
}

/// Tells whether a role includes pushing. Compatible servers report the role `maintain`, where
/// GitHub reports `write`.
fn may_write(access: &schema::Access) -> bool {
    matches!(access.permission.as_str(), "admin" | "maintain" | "write")
}
