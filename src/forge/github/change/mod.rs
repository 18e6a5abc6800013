//! Pull requests of the bot's own.

mod checks;

use std::collections::BTreeSet;

use async_trait::async_trait;
use http::{Method, StatusCode};
use serde_json::json;

use crate::forge::github::http::TokenScope;
use crate::forge::github::http::{encoded, path};
use crate::forge::github::item::comments::LONGEST_BODY;
use crate::forge::github::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::{Repeat, once, until_seen};
use crate::forge::item::address::ItemAddress;
use crate::forge::item::change::OpenChange;
use crate::forge::item::checks::Checks;
use crate::forge::platform::{ChangeApi, Platform};
use crate::forge::{Change, GitCredentials, NewChange};
use crate::markdown::marker::{short_title, shortened};

const LONGEST_TITLE: usize = 256;

#[async_trait]
impl ChangeApi for Api {
    async fn find_change(&self, repository: &str, head: &str) -> Result<Option<Change>, Failure> {
        let owner = repository.split('/').next().unwrap_or_default();
        let query = format!(
            "/pulls?state=open&head={}:{}&per_page=100",
            encoded(owner),
            encoded(head)
        );
        let scope = TokenScope::Repository(repository);
        let pulls: Vec<schema::Pull> = self.client.list(scope, &path(repository, &query)).await?;
        // A filter that GitHub does not understand is ignored, and then the list holds everything.
        // And a fork under the same owner passes the filter too.
        let found = pulls.into_iter().find(|pull| {
            let same_repository = match (&pull.head.repo, &pull.base.repo) {
                (Some(head), Some(base)) => head.full_name == base.full_name,
                (None, _) | (_, None) => false,
            };
            same_repository && pull.head.branch == head
        });
        Ok(found.map(change))
    }

    /// GitHub refuses a second pull request only for the same head and base; looking first keeps it
    /// at one per head.
    async fn make_change(&self, repository: &str, new: &NewChange) -> Result<Change, Failure> {
        let find = || self.find_change(repository, &new.head);
        let post = || once(true, find, || self.post_pull_request(repository, new));
        Box::pin(until_seen(does_not_see_branch, post)).await
    }

    /// One list of the repository instead of a request for each: it is confirmed by its tag while
    /// nothing changes.
    async fn list_changes(&self, repository: &str, _: &[u64]) -> Result<Vec<OpenChange>, Failure> {
        let at = path(repository, "/pulls?state=open&per_page=100");
        let pulls: Vec<schema::ListedPull> = self.client.list(TokenScope::Repository(repository), &at).await?;
        let change = |pull: schema::ListedPull| OpenChange {
            task: self.settings.task(ItemAddress {
                repository,
                kind: Self::CHANGE,
                number: pull.number,
            }),
            title: pull.title,
            head: pull.head.commit,
            updated_at: pull.updated_at,
        };
        Ok(pulls.into_iter().map(change).collect())
    }

    async fn read_checks(
        &self,
        address: ItemAddress<'_>,
        commit: &str,
        known: &BTreeSet<String>,
    ) -> Result<Checks, Failure> {
        self.checks_of(address, commit, known).await
    }

    async fn credentials(&self, repository: &str) -> Result<GitCredentials, Failure> {
        let (password, is_new) = self.client.secret(TokenScope::Repository(repository)).await?;
        Ok(GitCredentials {
            username: "x-access-token".to_owned(),
            password,
            is_new,
            trust: self.client.trust().clone(),
        })
    }
}

impl Api {
    async fn post_pull_request(&self, repository: &str, new: &NewChange) -> Result<Change, Failure> {
        let posted = self.post_as(repository, new, new.is_draft).await;
        match posted {
            Err(failure) if new.is_draft && failure.says(StatusCode::UNPROCESSABLE_ENTITY, "draft") => {
                // Private repositories of free accounts have no drafts: the title says it instead.
                self.post_as(repository, new, false).await
            }
            Err(failure) if failure.says(StatusCode::UNPROCESSABLE_ENTITY, "already exists") => {
                self.find_change(repository, &new.head).await?.ok_or(failure)
            }
            posted => posted,
        }
    }

    async fn post_as(&self, repository: &str, new: &NewChange, is_draft: bool) -> Result<Change, Failure> {
        let mark = if new.is_draft && !is_draft { "[Draft] " } else { "" };
        let body = json!({
            "title": short_title(&format!("{mark}{}", new.title), LONGEST_TITLE),
            "body": shortened(new.body.as_str(), LONGEST_BODY),
            "head": new.head,
            "base": new.base,
            "draft": is_draft,
        });
        let scope = TokenScope::Repository(repository);
        let at = path(repository, "/pulls");
        let made = self
            .client
            .write::<schema::Pull>(scope, Method::POST, &at, &body, Repeat::IfNotDone);
        made.await.map(change)
    }
}

/// Recognises the answer of a GitHub that has not noticed the push yet. Its message says no more
/// than `Validation Failed`; the field and the code are in the parts.
fn does_not_see_branch(failure: &Failure) -> bool {
    failure.says(StatusCode::UNPROCESSABLE_ENTITY, "head invalid")
}

fn change(pull: schema::Pull) -> Change {
    Change {
        number: pull.number,
        url: pull.html_url,
    }
}
