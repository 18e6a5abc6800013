//! Whose accounts the `allowed_users` are, for `doctor`.

use gitlab::api::users::{User, Users};

use super::{GitLab, PLATFORM, wire};
use crate::finding::Finding;
use crate::forge::allowed_users::{Entry, finding};
use crate::forge::failure::Failure;

impl GitLab {
    /// Returns what is to be said of each entry. A question that GitLab does not answer is passed
    /// over: the list works without it.
    pub(super) async fn examine_allowed(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for entry in self.allowed_users.entries() {
            let Ok(found) = self.account(entry).await else { continue };
            let found = found.as_ref().and_then(|user| Some((user.username.as_str(), user.id?)));
            findings.push(finding(PLATFORM, entry.told("gitlab", found)));
        }
        findings
    }

    async fn account(&self, entry: &Entry) -> Result<Option<wire::User>, Failure> {
        match entry {
            Entry::Login(login) => {
                let asked = Users::builder().username(login.as_str()).build();
                let found: Vec<wire::User> = self.client.list(asked).await?;
                Ok(found.into_iter().find(|user| user.username.eq_ignore_ascii_case(login)))
            }
            Entry::Id(id) => match self.client.ask(User::builder().user(*id).build()).await {
                Ok(user) => Ok(Some(user)),
                Err(failure) if failure.is_missing() => Ok(None),
                Err(failure) => Err(failure),
            },
        }
    }
}
