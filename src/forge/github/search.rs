//! Searching for items that carry the trigger label.
//!
//! A repository named by itself is listed: always up to date, and an unchanged list is confirmed by
//! its tag without counting against the rate limit. `owner/*` goes through the search: one request
//! however many repositories the owner has, against one per repository (and one to list them)
//! otherwise. The search's index runs some seconds behind, so what it brings is checked against the
//! labels that come along. Terms of the operator's own need the search as well.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use http::StatusCode;

use crate::forge::TriggeredItem;
use crate::forge::github::http::TokenScope;
use crate::forge::github::http::{encoded, path};
use crate::forge::github::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::{Platform, SearchApi};
use crate::forge::settings::source::Source;

#[async_trait]
impl SearchApi for Api {
    async fn search(&self, source: &Source) -> Result<Vec<TriggeredItem>, Failure> {
        match source {
            Source::Repository(name) if self.query.is_none() => self.listed(name).await,
            Source::Repository(name) => {
                self.searched(TokenScope::Repository(name), &format!("repo:{name}"))
                    .await
            }
            Source::All(owner) => self.searched(TokenScope::Owner(owner), &format!("user:{owner}")).await,
        }
    }

    async fn full_name(&self, repository: &str) -> Result<String, Failure> {
        Ok(self.repository(repository).await?.full_name.clone())
    }

    async fn clone_url(&self, repository: &str) -> Result<String, Failure> {
        let url = self.repository(repository).await?.clone_url.clone();
        self.client.admit(&url)?;
        Ok(url)
    }
}

impl Api {
    async fn listed(&self, name: &str) -> Result<Vec<TriggeredItem>, Failure> {
        let label = encoded(&self.settings.labels.trigger);
        // Oldest first: who asked first is served first.
        let query = format!("/issues?labels={label}&state=open&sort=created&direction=asc&per_page=100");
        let issues = self
            .client
            .list(TokenScope::Repository(name), &path(name, &query))
            .await?;
        let found = self.wanted(issues, Some(name));
        // Nothing can be written in an archived repository. Asked only where there is something to
        // do.
        if !found.is_empty() && self.repository(name).await?.archived {
            tracing::info!(
                repository = name,
                "labelled items in an archived repository were left alone"
            );
            return Ok(Vec::new());
        }
        Ok(found)
    }

    /// A fine-grained token may not search for issues and pull requests at once and gets a 422;
    /// only then are there two searches, and from then on.
    async fn searched(&self, scope: TokenScope<'_>, place: &str) -> Result<Vec<TriggeredItem>, Failure> {
        if !self.searches_separately.load(Ordering::Relaxed) {
            match self.search_for(scope, place, "").await {
                Err(failure) if failure.says(StatusCode::UNPROCESSABLE_ENTITY, "is:issue") => {
                    self.searches_separately.store(true, Ordering::Relaxed);
                }
                searched => return searched,
            }
        }
        let mut found = self.search_for(scope, place, "is:issue").await?;
        found.extend(self.search_for(scope, place, "is:pull-request").await?);
        Ok(found)
    }

    async fn search_for(&self, scope: TokenScope<'_>, place: &str, kind: &str) -> Result<Vec<TriggeredItem>, Failure> {
        let label = self.settings.labels.trigger.replace('\\', "\\\\").replace('"', "\\\"");
        let label = format!("label:\"{label}\"");
        let own = self.query.as_deref().unwrap_or_default().trim();
        let terms = [place, &label, "state:open", "archived:false", kind, own];
        let terms: Vec<&str> = terms.into_iter().filter(|term| !term.is_empty()).collect();
        let at = format!(
            "/search/issues?q={}&sort=created&order=asc&per_page=100",
            encoded(&terms.join(" "))
        );
        match self.client.search(scope, &at).await {
            // What is answered with a 404 elsewhere.
            Err(Failure::Answered { message, .. }) if message.contains("cannot be searched") => {
                Err(Failure::Answered {
                    status: StatusCode::NOT_FOUND,
                    message,
                })
            }
            issues => Ok(self.wanted(issues?, None)),
        }
    }

    fn wanted(&self, issues: Vec<schema::Issue>, repository: Option<&str>) -> Vec<TriggeredItem> {
        let trigger = self.settings.labels.trigger.to_lowercase();
        let is_labelled = |issue: &schema::Issue| issue.labels.iter().any(|label| label.name.to_lowercase() == trigger);
        let open = issues
            .into_iter()
            .filter(|issue| issue.state == "open" && is_labelled(issue));
        open.filter_map(|issue| {
            let repository = issue.repository().or(repository)?.to_owned();
            let address = ItemAddress {
                repository: &repository,
                kind: Self::CHANGE,
                number: issue.number,
            };
            self.learn_kind(address, &issue);
            Some(TriggeredItem {
                task: self.settings.task(address),
                title: issue.title,
            })
        })
        .collect()
    }
}
