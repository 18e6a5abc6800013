//! Merge requests of the bot's own.

use gitlab::api::projects::merge_requests::{CreateMergeRequest, MergeRequestState, MergeRequests};
use http::StatusCode;

use super::notes::LONGEST_BODY;
use super::{Address, GitLab, wire};
use crate::forge::failure::Failure;
use crate::forge::retry::{once, until_seen};
use crate::forge::{Change, NewChange};
use crate::markdown::marker::{short_title, shortened};
use crate::markdown::quick_actions::disarmed;

const LONGEST_TITLE: usize = 255;

impl GitLab {
    pub(super) async fn find_change(&self, address: Address<'_>, head: &str) -> Result<Option<Change>, Failure> {
        let mut requests = MergeRequests::builder();
        let requests = requests
            .project(address.project)
            .source_branch(head)
            .state(MergeRequestState::Opened);
        let found: Vec<wire::Item> = self.client.list(requests.build()).await?;
        // The branch of a fork may have the same name.
        let own = found.into_iter().find(|item| {
            item.source_branch.as_deref() == Some(head) && item.source_project_id == item.target_project_id
        });
        Ok(own.map(change))
    }

    /// GitLab refuses a second merge request only for the same source and target; looking first
    /// keeps it at one per source branch.
    pub(super) async fn open_merge_request(&self, address: Address<'_>, new: &NewChange) -> Result<Change, Failure> {
        let find = || self.find_change(address, &new.head);
        until_seen(does_not_see_branch, || {
            once(true, find, || self.post_merge_request(address, new))
        })
        .await
    }

    async fn post_merge_request(&self, address: Address<'_>, new: &NewChange) -> Result<Change, Failure> {
        let mark = if new.is_draft { "Draft: " } else { "" };
        let mut request = CreateMergeRequest::builder();
        let request = request
            .project(address.project)
            .source_branch(&new.head)
            .target_branch(&new.base)
            .title(short_title(&format!("{mark}{}", new.title), LONGEST_TITLE))
            .description(shortened(&disarmed(new.body.as_str()), LONGEST_BODY))
            .remove_source_branch(true);
        match self.client.ask(request.build()).await {
            Err(failure) if failure.says(StatusCode::CONFLICT, "already exists") => {
                self.find_change(address, &new.head).await?.ok_or(failure)
            }
            made => made.map(change),
        }
    }
}

/// Recognises the answer of a GitLab that has not noticed the push yet: `{"source_branch": ["does
/// not exist"]}`.
fn does_not_see_branch(failure: &Failure) -> bool {
    [StatusCode::BAD_REQUEST, StatusCode::UNPROCESSABLE_ENTITY]
        .iter()
        .any(|status| failure.says(*status, "source_branch") && failure.says(*status, "does not exist"))
}

fn change(item: wire::Item) -> Change {
    Change {
        number: item.iid,
        url: item.web_url,
    }
}
