//! Searching for items that carry the trigger label.
//!
//! A repository named by itself is listed: always up to date, and an unchanged list is confirmed by
//! its tag without counting against the rate limit. `owner/*` goes through the search: one request
//! however many repositories the owner has, against one per repository (and one to list them)
//! otherwise. The search's index runs some seconds behind, so what it brings is checked against the
//! labels that come along. Terms of the operator's own need the search as well.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use http::StatusCode;

use super::client::{encoded, path};
use super::installations::Rights;
use super::rights::Right;
use super::{Address, GitHub, attempt, wire};
use crate::forge::failure::Failure;
use crate::forge::source::Source;
use crate::forge::{Search, Triggered};
use crate::task::id::TaskId;

impl GitHub {
    pub(super) async fn search_triggered(&self) -> Search {
        let mut search = Search::default();
        let mut seen = BTreeSet::new();
        for source in &self.sources {
            match self.items_of(source).await {
                Ok(items) => {
                    let unseen = items.into_iter().filter(|item| seen.insert(item.task.clone()));
                    search.items.extend(unseen);
                }
                Err(failure) => {
                    let what = format!("searching {source} for labelled items");
                    let remedy = Right::ReadIssues.remedy(&source.to_string());
                    search.errors.push(attempt(&what, &remedy).failed(failure));
                }
            }
        }
        if search.errors.len() == self.sources.len() {
            // They have a cause in common, such as the token or the network, and that is said once.
            search.errors.truncate(1);
        }
        search
    }

    pub(super) async fn items_of(&self, source: &Source) -> Result<Vec<Triggered>, Failure> {
        let query = self.query.as_deref();
        let mut found = match source {
            Source::Repository(name) if query.is_none() => self.listed(name).await?,
            Source::Repository(name) => self.searched(Rights::Repository(name), &format!("repo:{name}")).await?,
            Source::All(owner) => self.searched(Rights::Owner(owner), &format!("user:{owner}")).await?,
        };
        let mut own = source.clone();
        if let Source::Repository(name) = source
            && !own.has_all(&found)
        {
            // One that was renamed still answers to its old name.
            own = Source::Repository(self.repository(name).await?.full_name.clone());
        }
        own.keep_own(&mut found);
        Ok(found)
    }

    async fn listed(&self, name: &str) -> Result<Vec<Triggered>, Failure> {
        let label = encoded(&self.labels.trigger);
        // Oldest first: who asked first is served first.
        let query = format!("/issues?labels={label}&state=open&sort=created&direction=asc&per_page=100");
        let issues = self.client.list(Rights::Repository(name), &path(name, &query)).await?;
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
    async fn searched(&self, rights: Rights<'_>, place: &str) -> Result<Vec<Triggered>, Failure> {
        if !self.searches_separately.load(Ordering::Relaxed) {
            match self.search(rights, place, "").await {
                Err(failure) if failure.says(StatusCode::UNPROCESSABLE_ENTITY, "is:issue") => {
                    self.searches_separately.store(true, Ordering::Relaxed);
                }
                searched => return searched,
            }
        }
        let mut found = self.search(rights, place, "is:issue").await?;
        found.extend(self.search(rights, place, "is:pull-request").await?);
        Ok(found)
    }

    async fn search(&self, rights: Rights<'_>, place: &str, kind: &str) -> Result<Vec<Triggered>, Failure> {
        let label = self.labels.trigger.replace('\\', "\\\\").replace('"', "\\\"");
        let label = format!("label:\"{label}\"");
        let own = self.query.as_deref().unwrap_or_default().trim();
        let terms = [place, &label, "state:open", "archived:false", kind, own];
        let terms: Vec<&str> = terms.into_iter().filter(|term| !term.is_empty()).collect();
        let at = format!(
            "/search/issues?q={}&sort=created&order=asc&per_page=100",
            encoded(&terms.join(" "))
        );
        match self.client.search(rights, &at).await {
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

    fn wanted(&self, issues: Vec<wire::Issue>, repository: Option<&str>) -> Vec<Triggered> {
        let trigger = self.labels.trigger.to_lowercase();
        let is_labelled = |issue: &wire::Issue| issue.labels.iter().any(|label| label.name.to_lowercase() == trigger);
        let open = issues
            .into_iter()
            .filter(|issue| issue.state == "open" && is_labelled(issue));
        open.filter_map(|issue| {
            let repository = issue.repository().or(repository)?.to_owned();
            let address = Address {
                repository: &repository,
                number: issue.number,
            };
            self.learn_kind(address, &issue);
            Some(Triggered {
                task: TaskId::GitHub {
                    number: issue.number,
                    repository,
                },
                title: issue.title,
            })
        })
        .collect()
    }
}
