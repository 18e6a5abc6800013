//! Searching for items that carry the trigger label, or that something happened to.
//!
//! Two requests for each project or group, because GitLab lists issues and merge requests apart.
//! One list over all that the bot may see would be fewer, but on gitlab.com that is everybody's
//! public projects. A group's lists include its subgroups and leave archived projects out.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use gitlab::api::common::SortOrder;
use gitlab::api::groups::issues::{IssueScope, IssueState, Issues as GroupIssues};
use gitlab::api::projects::issues::Issues;
use gitlab::api::projects::merge_requests::{MergeRequestScope, MergeRequestState, MergeRequests};
use http::StatusCode;

use crate::forge::FoundItem;
use crate::forge::gitlab::http::endpoints::GroupMergeRequests;
use crate::forge::gitlab::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::{ExamineApi, SearchApi};
use crate::forge::settings::allowed_users::Entry;
use crate::forge::settings::source::Source;
use crate::task::id::ItemKind;

#[async_trait]
impl SearchApi for Api {
    async fn search(&self, source: &Source) -> Result<Vec<FoundItem>, Failure> {
        let trigger = self.settings.labels.trigger.as_str();
        match source {
            Source::Repository(project) => {
                let found = self.search_project(project, Chosen::Label(trigger)).await?;
                // Nothing can be written in an archived project. Asked only where there is
                // something to do.
                if !found.is_empty() && self.project(project).await?.archived {
                    tracing::info!(project, "labelled items in an archived project were left alone");
                    return Ok(Vec::new());
                }
                Ok(found)
            }
            Source::All(group) => self.search_group(group, Chosen::Label(trigger)).await,
        }
    }

    async fn search_touched(&self, source: &Source, since: DateTime<Utc>) -> Result<Vec<FoundItem>, Failure> {
        match source {
            Source::Repository(project) => self.search_project(project, Chosen::UpdatedAfter(since)).await,
            Source::All(group) => self.search_group(group, Chosen::UpdatedAfter(since)).await,
        }
    }

    async fn full_name(&self, repository: &str) -> Result<String, Failure> {
        let found = self.ask_project(repository).await?;
        Ok(self.projects.learn(repository, found).path_with_namespace.clone())
    }

    async fn clone_url(&self, repository: &str) -> Result<String, Failure> {
        let url = self.project(repository).await?.http_url_to_repo.clone();
        self.client.admit(&url)?;
        Ok(url)
    }
}

/// The open items that are asked for.
#[derive(Clone, Copy)]
enum Chosen<'a> {
    Label(&'a str),
    UpdatedAfter(DateTime<Utc>),
}

impl Api {
    async fn search_project(&self, project: &str, chosen: Chosen<'_>) -> Result<Vec<FoundItem>, Failure> {
        let mut issues = Issues::builder();
        let issues = issues.project(project).state(IssueState::Opened).scope(IssueScope::All);
        let mut requests = MergeRequests::builder();
        let requests = requests.project(project).state(MergeRequestState::Opened);
        let requests = requests.scope(MergeRequestScope::All);
        match chosen {
            Chosen::Label(label) => {
                issues.label(label);
                requests.label(label);
            }
            Chosen::UpdatedAfter(time) => {
                issues.updated_after(time);
                requests.updated_after(time);
            }
        }
        let issues = self.client.list(issues.sort(SortOrder::Ascending).build()).await?;
        let requests = self.client.list(requests.sort(SortOrder::Ascending).build()).await?;
        Ok(self.collected(issues, requests, Some(project)))
    }

    async fn search_group(&self, group: &str, chosen: Chosen<'_>) -> Result<Vec<FoundItem>, Failure> {
        let mut issues = GroupIssues::builder();
        let issues = issues.group(group).state(IssueState::Opened).scope(IssueScope::All);
        let requests = match chosen {
            Chosen::Label(label) => {
                issues.label(label);
                GroupMergeRequests::labelled(group, label)
            }
            Chosen::UpdatedAfter(time) => {
                issues.updated_after(time);
                GroupMergeRequests::updated_after(group, time)
            }
        };
        let issues = issues.non_archived(true).sort(SortOrder::Ascending).build();
        let issues = match self.client.list(issues).await {
            Err(failure) if failure.is_missing() && self.is_user(group).await => {
                return Err(Failure::Unprepared {
                    status: StatusCode::NOT_FOUND,
                    remedy: format!(
                        "{group} is a user and no group, and GitLab lists no items of all of a user's projects: name the \
                         projects one by one in gitlab.projects"
                    ),
                });
            }
            issues => issues?,
        };
        let requests = self.client.list(Ok::<_, std::convert::Infallible>(requests)).await?;
        Ok(self.collected(issues, requests, None))
    }

    async fn is_user(&self, name: &str) -> bool {
        let entry = Entry::Login(name.to_lowercase());
        matches!(self.account(&entry).await, Ok(Some(_)))
    }

    fn collected(
        &self,
        issues: Vec<schema::Item>,
        requests: Vec<schema::Item>,
        project: Option<&str>,
    ) -> Vec<FoundItem> {
        let issues = issues.into_iter().map(|item| (ItemKind::Issue, item));
        let requests = requests.into_iter().map(|item| (ItemKind::MergeRequest, item));
        let all = issues.chain(requests).filter(|(_, item)| item.state == "opened");
        all.filter_map(|(kind, item)| {
            let named = item
                .references
                .as_ref()
                .and_then(|references| references.full.rsplit_once(['#', '!']));
            let address = ItemAddress {
                repository: named.map(|(project, _)| project).or(project)?,
                kind,
                number: item.iid,
            };
            Some(FoundItem {
                task: self.settings.task(address),
                title: item.title,
                updated_at: item.updated_at,
            })
        })
        .collect()
    }
}
