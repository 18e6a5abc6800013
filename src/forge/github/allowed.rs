//! Whose accounts the `allowed_users` are, for `doctor`.

use super::client::encoded;
use super::installations::Rights;
use super::{GitHub, PLATFORM, wire};
use crate::finding::Finding;
use crate::forge::allowed_users::{Entry, finding};
use crate::forge::failure::Failure;
use crate::forge::source::Source;

impl GitHub {
    /// Returns what is to be said of each entry. A question that GitHub does not answer is passed
    /// over: the list works without it.
    pub(super) async fn examine_allowed(&self) -> Vec<Finding> {
        let rights = match self.sources.first() {
            Some(Source::Repository(name)) => Rights::Repository(name),
            Some(Source::All(owner)) => Rights::Owner(owner),
            None => return Vec::new(),
        };
        let mut findings = Vec::new();
        for entry in self.allowed_users.entries() {
            let at = match entry {
                Entry::Login(login) => format!("/users/{}", encoded(login)),
                Entry::Id(id) => format!("/user/{id}"),
            };
            let found = match self.client.get::<wire::User>(rights, &at).await {
                Ok(user) => Some(user),
                Err(Failure::Answered { status, .. }) if status.as_u16() == 404 => None,
                Err(_) => continue,
            };
            let found = found.as_ref().and_then(|user| Some((user.login.as_str(), user.id?)));
            findings.push(finding(PLATFORM, entry.told("github", found)));
        }
        findings
    }
}
