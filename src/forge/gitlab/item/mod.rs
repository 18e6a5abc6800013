//! Reading one item.

pub(crate) mod comments;
mod pictures;
mod reactions;
mod labels;
mod history;

use std::sync::Arc;

use async_trait::async_trait;

use crate::forge::gitlab::http::endpoints::Below;
use crate::forge::gitlab::item::comments::body;
use crate::forge::gitlab::{Api, ConfidentialIssues, schema};
use crate::forge::http::failure::Failure;
use crate::forge::http::retry::once;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::ItemApi;
use crate::forge::{ChangeHead, Discretion, Item, NewIssue, PushRight};
use crate::markdown::marker::is_marked;
use crate::picture::Picture;
use crate::task::id::ItemKind;

#[async_trait]
impl ItemApi for Api {
    /// Reads the item again: one request, one more unless the project was read lately, and one for
    /// a fork.
    async fn read_item(&self, address: ItemAddress<'_>) -> Result<Item, Failure> {
        let item = self.ask_item(address).await?;
        let project = self.project(address.repository).await?;
        let change = match address.kind {
            ItemKind::Issue => None,
            ItemKind::MergeRequest => Some(self.change_head(&item, &project).await?),
        };
        self.client.admit(&project.http_url_to_repo)?;
        if let Some(change) = &change {
            self.client.admit(&change.head_clone_url)?;
        }
        let discretion = self.discretion(&item, &project);
        Ok(Item {
            task: self.settings.task(address),
            title: item.title,
            body: item.description.unwrap_or_default(),
            author_id: item.author.as_ref().and_then(|author| author.id),
            author: item.author.map(|author| author.username).unwrap_or_default(),
            labels: item.labels,
            assignees: item.assignees.into_iter().map(|user| user.username).collect(),
            is_open: item.state == "opened",
            is_merged: item.state == "merged",
            created_at: item.created_at,
            updated_at: item.updated_at,
            url: item.web_url,
            clone_url: project.http_url_to_repo.clone(),
            default_branch: project.default_branch.clone().filter(|_| !project.empty_repo),
            change,
            discretion,
            is_public: project.is_open_to_more(),
        })
    }

    async fn post_issue(&self, repository: &str, issue: &NewIssue<'_>) -> Result<(u64, String), Failure> {
        let post = &issue.post;
        let find = || async move {
            let newest = Below::get(repository, "/issues")
                .with("order_by", "created_at")
                .with("sort", "desc")
                .with("scope", "all")
                .with("per_page", "100");
            let issues: Vec<schema::Item> = self.client.ask(newest.build()).await?;
            for issue in issues {
                let is_marked = issue
                    .description
                    .as_deref()
                    .is_some_and(|text| is_marked(text, post.marker));
                if is_marked && self.is_bot(issue.author.as_ref()).await? {
                    return Ok(Some((issue.iid, issue.web_url)));
                }
            }
            Ok(None)
        };
        let text = &body(post);
        let make = || async move {
            let new = Below::post(repository, "/issues")
                .with("title", issue.title.as_str())
                .with("description", text);
            let made: schema::Item = self.client.ask(new.build()).await?;
            Ok((made.iid, made.web_url))
        };
        once(post.search_first, find, make).await
    }

    async fn put_picture(&self, repository: &str, picture: &Picture) -> Result<Option<String>, Failure> {
        self.attach(repository, picture).await.map(Some)
    }

    async fn probe_item(&self, address: ItemAddress<'_>) -> Result<(), Failure> {
        self.ask_item(address).await.map(|_| ())
    }

    async fn probe_repository(&self, repository: &str) -> Result<(), Failure> {
        self.ask_project(repository).await.map(|_| ())
    }
}

impl Api {
    fn discretion(&self, item: &schema::Item, project: &schema::Project) -> Discretion {
        let is_narrower = item.confidential == Some(true) && project.is_open_to_more();
        match self.confidential_issues {
            _ if !is_narrower => Discretion::NotNeeded,
            ConfidentialIssues::Refuse => Discretion::Refused,
            ConfidentialIssues::NeutralNames => Discretion::NeutralNames,
        }
    }

    pub(crate) async fn ask_item(&self, address: ItemAddress<'_>) -> Result<schema::Item, Failure> {
        self.client.ask(Below::get(address, "").build()).await
    }

    async fn change_head(&self, item: &schema::Item, project: &schema::Project) -> Result<ChangeHead, Failure> {
        let branch = |branch: &Option<String>| {
            branch
                .clone()
                .ok_or_else(|| Failure::unreadable("the merge request names no branch"))
        };
        let target = item.target_project_id.unwrap_or(project.id);
        let is_fork = item.source_project_id != Some(target);
        let fork = match item.source_project_id {
            Some(source) if is_fork => self.fork(source).await?,
            Some(_) | None => None,
        };
        let head_repository = match &fork {
            Some(fork) => Some(fork.path_with_namespace.clone()),
            None if is_fork => None,
            None => Some(project.path_with_namespace.clone()),
        };
        let is_allowed = item.allow_collaboration.or(item.allow_maintainer_to_push) == Some(true);
        Ok(ChangeHead {
            head_branch: branch(&item.source_branch)?,
            base_branch: branch(&item.target_branch)?,
            push: match item.user.as_ref().and_then(|user| user.can_merge) {
                _ if !is_fork => PushRight::Given,
                _ if fork.is_none() || !is_allowed => PushRight::NotGiven,
                Some(false) => PushRight::ForMergers,
                Some(true) | None => PushRight::Given,
            },
            head_commit: item.sha.clone(),
            head_repository,
            // Of a deleted or hidden fork only the target project has the commits.
            head_clone_url: fork.as_deref().unwrap_or(project).http_url_to_repo.clone(),
            is_fork,
            is_draft: item.draft == Some(true),
        })
    }

    /// Returns the project of a fork, if the bot may see it.
    async fn fork(&self, id: u64) -> Result<Option<Arc<schema::Project>>, Failure> {
        let name = id.to_string();
        if let Some(project) = self.projects.fact(&name) {
            return Ok(Some(project));
        }
        match self.ask_project(id).await {
            Ok(project) => Ok(Some(self.projects.learn(&name, project))),
            Err(failure) if failure.is_missing() || failure.status() == Some(http::StatusCode::FORBIDDEN) => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}
