//! Searching for items that carry the trigger label.
//!
//! Two requests for each project or group, because GitLab lists issues and merge requests apart.
//! One list over all that the bot may see would be fewer, but on gitlab.com that is everybody's
//! public projects. A group's lists include its subgroups and leave archived projects out.

use std::collections::BTreeSet;

use gitlab::api::common::SortOrder;
use gitlab::api::groups::issues::{IssueScope, IssueState, Issues as GroupIssues};
use gitlab::api::projects::issues::Issues;
use gitlab::api::projects::merge_requests::{MergeRequestScope, MergeRequestState, MergeRequests};

use super::endpoints::GroupMergeRequests;
use super::rights::Right;
use super::{GitLab, Kind, attempt, wire};
use crate::forge::failure::Failure;
use crate::forge::source::Source;
use crate::forge::{Search, Triggered};
use crate::task::id::TaskId;

impl GitLab {
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
                    let remedy = Right::Read.remedy(&source.to_string());
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
        let mut found = self.searched(source).await?;
        let mut own = source.clone();
        if let Source::Repository(name) = source
            && !own.has_all(&found)
        {
            // One that was renamed still answers to its old name.
            own = Source::Repository(self.project(name).await?.path_with_namespace.clone());
        }
        own.keep_own(&mut found);
        Ok(found)
    }

    async fn searched(&self, source: &Source) -> Result<Vec<Triggered>, Failure> {
        let trigger = self.labels.trigger.as_str();
        match source {
            Source::Repository(project) => {
                let mut issues = Issues::builder();
                let issues = issues
                    .project(project)
                    .label(trigger)
                    .state(IssueState::Opened)
                    .scope(IssueScope::All);
                let issues = self.client.list(issues.sort(SortOrder::Ascending).build()).await?;
                let mut requests = MergeRequests::builder();
                let requests = requests
                    .project(project)
                    .label(trigger)
                    .state(MergeRequestState::Opened);
                let requests = requests.scope(MergeRequestScope::All).sort(SortOrder::Ascending);
                let requests = self.client.list(requests.build()).await?;
                let found = collected(issues, requests, Some(project));
                // Nothing can be written in an archived project. Asked only where there is
                // something to do.
                if !found.is_empty() && self.project(project).await?.archived {
                    tracing::info!(project, "labelled items in an archived project were left alone");
                    return Ok(Vec::new());
                }
                Ok(found)
            }
            Source::All(group) => {
                let mut issues = GroupIssues::builder();
                let issues = issues
                    .group(group)
                    .label(trigger)
                    .state(IssueState::Opened)
                    .scope(IssueScope::All);
                let issues = self
                    .client
                    .list(issues.non_archived(true).sort(SortOrder::Ascending).build())
                    .await?;
                let requests = GroupMergeRequests { group, label: trigger };
                let requests = self.client.list(Ok::<_, std::convert::Infallible>(requests)).await?;
                Ok(collected(issues, requests, None))
            }
        }
    }
}

fn collected(issues: Vec<wire::Item>, requests: Vec<wire::Item>, project: Option<&str>) -> Vec<Triggered> {
    let issues = issues.into_iter().map(|item| (Kind::Issue, item));
    let requests = requests.into_iter().map(|item| (Kind::MergeRequest, item));
    let all = issues.chain(requests).filter(|(_, item)| item.state == "opened");
    all.filter_map(|(kind, item)| {
        let named = item
            .references
            .as_ref()
            .and_then(|references| references.full.rsplit_once(['#', '!']));
        let project = named.map(|(project, _)| project).or(project)?.to_owned();
        let iid = item.iid;
        let task = match kind {
            Kind::Issue => TaskId::GitLabIssue { project, iid },
            Kind::MergeRequest => TaskId::GitLabMergeRequest { project, iid },
        };
        Some(Triggered {
            task,
            title: item.title,
        })
    })
    .collect()
}
