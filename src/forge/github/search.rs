//! Searching for items that carry the trigger label, or that something happened to.
//!
//! A repository named by itself is listed: always up to date, and an unchanged list is confirmed by
//! its tag without counting against the rate limit. `owner/*` goes through the search: one request
//! however many repositories the owner has, against one per repository (and one to list them)
//! otherwise. The search's index runs some seconds behind, so what it brings is checked against the
//! labels that come along. Terms of the operator's own need the search as well.

use std::sync::atomic::Ordering;

use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, Utc};
use http::StatusCode;

use crate::forge::FoundItem;
use crate::forge::github::http::TokenScope;
use crate::forge::github::http::{encoded, path};
use crate::forge::github::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::{Platform, SearchApi};
use crate::forge::settings::source::Source;

#[async_trait]
impl SearchApi for Api {
    async fn search(&self, source: &Source) -> Result<Vec<FoundItem>, Failure> {
        match source {
            Source::Repository(name) if self.query.is_none() => self.listed(name).await,
            Source::Repository(name) => {
                self.searched(TokenScope::Repository(name), &format!("repo:{name}"))
                    .await
            }
            Source::All(owner) => self.searched(TokenScope::Owner(owner), &format!("user:{owner}")).await,
        }
    }

    /// The list of one repository has every item: what GitHub counts as a mention of an account it
    /// does not say, and for an App it counts none. Of an owner's repositories only those items are
    /// asked for that the account is involved in, where it can be.
    async fn search_touched(&self, source: &Source, since: DateTime<Utc>) -> Result<Vec<FoundItem>, Failure> {
        let since = since.to_rfc3339_opts(SecondsFormat::Secs, true);
        match source {
            Source::Repository(name) if self.query.is_none() => {
                let query = format!("/issues?state=open&since={since}&sort=updated&direction=asc&per_page=100");
                let scope = TokenScope::Repository(name);
                let issues = self.client.list(scope, &path(name, &query)).await?;
                Ok(self.found(issues, Some(name)))
            }
            Source::Repository(name) => {
                let terms = format!("repo:{name} updated:>={since}");
                self.searched_touched(TokenScope::Repository(name), &terms).await
            }
            Source::All(owner) => {
                let involved = match self.own_login().await? {
                    _ if self.is_app => String::new(),
                    login => format!(" involves:{login}"),
                };
                let terms = format!("user:{owner} updated:>={since}{involved}");
                self.searched_touched(TokenScope::Owner(owner), &terms).await
            }
        }
    }

    async fn full_name(&self, repository: &str) -> Result<String, Failure> {
        let found = self.ask_repository(repository).await?;
        Ok(self.repositories.learn(repository, found).full_name.clone())
    }

    async fn clone_url(&self, repository: &str) -> Result<String, Failure> {
        let url = self.repository(repository).await?.clone_url.clone();
        self.client.admit(&url)?;
        Ok(url)
    }
}

impl Api {
    async fn listed(&self, name: &str) -> Result<Vec<FoundItem>, Failure> {
        let label = encoded(&self.settings.labels.trigger);
        // Oldest first: who asked first is served first.
        let query = format!("/issues?labels={label}&state=open&sort=created&direction=asc&per_page=100");
        let issues = self
            .client
            .list(TokenScope::Repository(name), &path(name, &query))
            .await?;
        let found = self.labelled(issues, Some(name));
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

    async fn searched(&self, scope: TokenScope<'_>, place: &str) -> Result<Vec<FoundItem>, Failure> {
        let label = self.settings.labels.trigger.replace('\\', "\\\\").replace('"', "\\\"");
        let issues = self.both_kinds(scope, &format!("{place} label:\"{label}\"")).await?;
        Ok(self.labelled(issues, None))
    }

    async fn searched_touched(&self, scope: TokenScope<'_>, terms: &str) -> Result<Vec<FoundItem>, Failure> {
        Ok(self.found(self.both_kinds(scope, terms).await?, None))
    }

    /// Searches for items, in one request or in two: a fine-grained token may not search for issues
    /// and pull requests at once and gets a 422. From then on there are always two.
    async fn both_kinds(&self, scope: TokenScope<'_>, terms: &str) -> Result<Vec<schema::Issue>, Failure> {
        if !self.searches_separately.load(Ordering::Relaxed) {
            match self.search_for(scope, terms, "").await {
                Err(failure) if failure.says(StatusCode::UNPROCESSABLE_ENTITY, "is:issue") => {
                    self.searches_separately.store(true, Ordering::Relaxed);
                }
                searched => return searched,
            }
        }
        let mut found = self.search_for(scope, terms, "is:issue").await?;
        found.extend(self.search_for(scope, terms, "is:pull-request").await?);
        Ok(found)
    }

    async fn search_for(&self, scope: TokenScope<'_>, terms: &str, kind: &str) -> Result<Vec<schema::Issue>, Failure> {
        let own = self.query.as_deref().unwrap_or_default().trim();
        let terms = [terms, "state:open", "archived:false", kind, own];
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
            issues => issues,
        }
    }

    fn labelled(&self, mut issues: Vec<schema::Issue>, repository: Option<&str>) -> Vec<FoundItem> {
        let trigger = self.settings.labels.trigger.to_lowercase();
        issues.retain(|issue| issue.labels.iter().any(|label| label.name.to_lowercase() == trigger));
        self.found(issues, repository)
    }

    fn found(&self, issues: Vec<schema::Issue>, repository: Option<&str>) -> Vec<FoundItem> {
        let open = issues.into_iter().filter(|issue| issue.state == "open");
        open.filter_map(|issue| {
            let repository = issue.repository().or(repository)?.to_owned();
            let address = ItemAddress {
                repository: &repository,
                kind: Self::CHANGE,
                number: issue.number,
            };
            self.learn_kind(address, &issue);
            Some(FoundItem {
                task: self.settings.task(address),
                title: issue.title,
                updated_at: issue.updated_at,
            })
        })
        .collect()
    }
}
