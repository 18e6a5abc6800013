//! The bot's account, and who may write.

use async_trait::async_trait;

use crate::forge::host::Host;
use crate::forge::http::failure::Attempt;
use crate::forge::item::account::Account;
use crate::forge::platform::{Platform, Right};
use crate::forge::{ForgeError, Permissions};
use crate::task::id::TaskId;

#[async_trait]
impl<P: Platform> Permissions for Host<P> {
    async fn bot_name(&self) -> Result<String, ForgeError> {
        let login = self.platform.bot().await;
        login.map(str::to_owned).map_err(|failure| {
            let attempt = Attempt {
                platform: &self.platform.settings().title,
                what: "asking for the bot's own account",
                remedy: P::TERMS.renew,
                renew: P::TERMS.renew,
            };
            attempt.failed(failure)
        })
    }

    async fn is_authorised(&self, task: &TaskId, who: Account<'_>) -> Result<bool, ForgeError> {
        let repository = self.address(task)?.repository;
        // A deleted account has no login, and to ask for none asks for something else.
        if self.allows(who) || who.login.is_empty() {
            return Ok(self.allows(who));
        }
        let may = self.platform.may_write(repository, who).await;
        may.map_err(|failure| {
            let what = format!("asking whether {} may write to {repository}", who.login);
            self.refused(failure, &what, Right::ReadRoles, repository)
        })
    }

    fn allows(&self, who: Account<'_>) -> bool {
        self.platform.settings().allowed_users.name(who)
    }

    async fn missing_push_right(&self, task: &TaskId) -> Result<Option<String>, ForgeError> {
        let repository = self.address(task)?.repository;
        match self.platform.may_push(repository).await {
            Ok(true) => Ok(None),
            Ok(false) => Ok(Some(P::remedy(Right::Push, repository))),
            Err(failure) => {
                let what = format!("asking whether the program's account may push to {repository}");
                Err(self.refused(failure, &what, Right::ReadRoles, repository))
            }
        }
    }
}
