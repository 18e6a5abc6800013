//! Reading one item.

pub(crate) mod comments;
mod pictures;
mod reactions;
mod labels;
mod history;

use std::sync::Arc;

use async_trait::async_trait;
use http::{Method, StatusCode};
use serde_json::json;

use crate::forge::github::http::TokenScope;
use crate::forge::github::http::{encoded_branch, path};
use crate::forge::github::item::comments::LONGEST_BODY;
use crate::forge::github::{Api, Kind, schema};
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::{Repeat, once};
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::ItemApi;
use crate::forge::{ChangeHead, Discretion, Item, NewIssue, PushRight};
use crate::markdown::marker::{is_marked, marked};

/// Begins the title of a draft where GitHub has no drafts.
pub(crate) const DRAFT_MARK: &str = "[Draft] ";

#[async_trait]
impl ItemApi for Api {
    /// Reads the item again: one request for an issue, one more for a pull request, and one for the
    /// repository unless it was read lately.
    async fn read_item(&self, address: ItemAddress<'_>) -> Result<Item, Failure> {
        let issue = self.ask_issue(address).await?;
        self.stays(&issue, address).await?;
        self.learn_kind(address, &issue);
        let (clone_url, default_branch, change, is_private) = if issue.pull_request.is_some() {
            let at = path(address.repository, &format!("/pulls/{}", address.number));
            let pull: schema::Pull = self.client.get(TokenScope::Repository(address.repository), &at).await?;
            let base = pull.base.repo.as_ref();
            let base = base.ok_or_else(|| Failure::unreadable("the pull request has no base repository"))?;
            let reaches_others = self.client.reaches_other_owners();
            let is_draft = pull.draft == Some(true) || issue.title.starts_with(DRAFT_MARK);
            let head = change_head(&pull, base, reaches_others);
            // Where there is something to merge there are commits.
            (
                base.clone_url.clone(),
                base.default_branch.clone(),
                Some(ChangeHead { is_draft, ..head }),
                base.private,
            )
        } else {
            let repository = self.repository(address.repository).await?;
            (
                repository.clone_url.clone(),
                self.default_branch(address, &repository).await?,
                None,
                repository.private,
            )
        };
        self.client.admit(&clone_url)?;
        if let Some(change) = &change {
            self.client.admit(&change.head_clone_url)?;
        }
        Ok(Item {
            task: self.settings.task(address),
            title: issue.title,
            body: issue.body.unwrap_or_default(),
            author_id: issue.user.as_ref().and_then(|user| user.id),
            author: issue.user.map(|user| user.login).unwrap_or_default(),
            labels: issue.labels.into_iter().map(|label| label.name).collect(),
            assignees: issue.assignees.into_iter().map(|user| user.login).collect(),
            is_open: issue.state == "open",
            is_merged: issue.pull_request.is_some_and(|pull| pull["merged_at"].is_string()),
            created_at: issue.created_at,
            updated_at: issue.updated_at,
            url: issue.html_url,
            clone_url,
            default_branch,
            change,
            // Issues of GitHub are read by whoever can read the repository.
            discretion: Discretion::NotNeeded,
            is_public: !is_private,
        })
    }

    async fn post_issue(&self, repository: &str, issue: &NewIssue<'_>) -> Result<(u64, String), Failure> {
        let scope = TokenScope::Repository(repository);
        let post = &issue.post;
        let body = json!({
            "title": issue.title.as_str(),
            "body": marked(post.body.as_str(), post.marker, LONGEST_BODY),
        });
        let find = || async move {
            let newest = path(repository, "/issues?state=all&sort=created&direction=desc&per_page=100");
            let issues: Vec<schema::Issue> = self.client.get(scope, &newest).await?;
            for issue in issues {
                let is_marked = issue.body.as_deref().is_some_and(|body| is_marked(body, post.marker));
                if is_marked && self.is_bot(issue.user.as_ref()).await? {
                    return Ok(Some((issue.number, issue.html_url)));
                }
            }
            Ok(None)
        };
        let (at, body) = (path(repository, "/issues"), &body);
        let make = || async {
            let made = self.client.write(scope, Method::POST, &at, body, Repeat::IfNotDone);
            let made: schema::Issue = made.await?;
            Ok((made.number, made.html_url))
        };
        once(post.search_first, find, make).await
    }

    async fn probe_item(&self, address: ItemAddress<'_>) -> Result<(), Failure> {
        self.ask_issue(address).await.map(|_| ())
    }

    async fn probe_repository(&self, repository: &str) -> Result<(), Failure> {
        self.ask_repository(repository).await.map(|_| ())
    }

    fn specified(&self, failure: Failure, address: ItemAddress<'_>) -> Failure {
        if failure.says(StatusCode::GONE, "disabled") {
            return Failure::Unprepared {
                status: StatusCode::GONE,
                remedy: format!("switch issues on in the settings of {}", address.repository),
            };
        }
        failure
    }
}

impl Api {
    /// Tells whether `address` is a pull request; known from the search or an earlier read, else
    /// asked.
    pub(crate) async fn kind(&self, address: ItemAddress<'_>) -> Result<Kind, Failure> {
        if let Some(kind) = self.kinds.fact(&address.to_string()) {
            return Ok(*kind);
        }
        let issue = self.ask_issue(address).await?;
        Ok(self.learn_kind(address, &issue))
    }

    pub(crate) fn learn_kind(&self, address: ItemAddress<'_>, issue: &schema::Issue) -> Kind {
        let kind = if issue.pull_request.is_some() {
            Kind::PullRequest
        } else {
            Kind::Issue
        };
        *self.kinds.learn(&address.to_string(), kind)
    }

    /// Fails if the issue was transferred: GitHub silently redirects to its new place, but for a
    /// run it is gone. A renamed repository redirects as well, and its issues are still the same.
    async fn stays(&self, issue: &schema::Issue, address: ItemAddress<'_>) -> Result<(), Failure> {
        let moved = || Failure::Answered {
            status: StatusCode::GONE,
            message: "it was moved away".to_owned(),
        };
        if issue.number != address.number {
            return Err(moved());
        }
        let Some(home) = issue.repository() else { return Ok(()) };
        if home.eq_ignore_ascii_case(address.repository) {
            return Ok(());
        }
        let repository = self.repository(address.repository).await?;
        if home.eq_ignore_ascii_case(&repository.full_name) {
            return Ok(());
        }
        // What is remembered of the repository may be older than its new name.
        let repository = self.ask_repository(address.repository).await?;
        let repository = self.repositories.learn(address.repository, repository);
        if home.eq_ignore_ascii_case(&repository.full_name) {
            return Ok(());
        }
        Err(moved())
    }

    /// Returns the default branch, if it has a commit: GitHub names one even in an empty
    /// repository. Only a repository whose size counts as zero can be empty, so only there the
    /// branch is looked up.
    async fn default_branch(
        &self,
        address: ItemAddress<'_>,
        repository: &Arc<schema::Repository>,
    ) -> Result<Option<String>, Failure> {
        let Some(branch) = repository.default_branch.clone() else {
            return Ok(None);
        };
        if repository.size > 0 {
            return Ok(Some(branch));
        }
        let at = path(address.repository, &format!("/branches/{}", encoded_branch(&branch)));
        match self.client.fetch(TokenScope::Repository(address.repository), &at).await {
            Ok(_) => Ok(Some(branch)),
            Err(failure) if matches!(failure.status(), Some(StatusCode::NOT_FOUND | StatusCode::CONFLICT)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

fn change_head(pull: &schema::Pull, base: &schema::Repository, reaches_others: bool) -> ChangeHead {
    let head = pull.head.repo.as_ref();
    let is_fork = head.is_none_or(|head| !head.full_name.eq_ignore_ascii_case(&base.full_name));
    ChangeHead {
        head_branch: pull.head.branch.clone(),
        base_branch: pull.base.branch.clone(),
        head_commit: pull.head.commit.clone(),
        head_repository: head.map(|head| head.full_name.clone()),
        // Of a deleted fork only the base repository still has the commits.
        head_clone_url: head.unwrap_or(base).clone_url.clone(),
        is_fork,
        is_draft: false,
        push: match head {
            Some(_) if !is_fork => PushRight::Given,
            Some(head) if pull.maintainer_can_modify == Some(true) => {
                if reaches_others || owner(head).eq_ignore_ascii_case(owner(base)) {
                    PushRight::Given
                } else {
                    PushRight::OutOfReach
                }
            }
            Some(_) | None => PushRight::NotGiven,
        },
    }
}

fn owner(repository: &schema::Repository) -> &str {
    repository.full_name.split('/').next().unwrap_or_default()
}
