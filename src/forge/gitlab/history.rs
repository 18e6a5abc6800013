//! Who asked for the work, and who changed its text.
//!
//! GitLab keeps a history of labels, and writes a note below the item when its title or description is changed.

use gitlab::api::projects::issues::IssueResourceLabelEvents;
use gitlab::api::projects::merge_requests::MergeRequestResourceLabelEvents;

use super::{Address, GitLab, Kind, wire};
use crate::forge::Deed;
use crate::forge::failure::Failure;

/// How GitLab's notes about another text begin, in every language of its pages.
const EDITS: [&str; 2] = ["changed the description", "changed title"];

impl GitLab {
    pub(super) async fn find_trigger(&self, address: Address<'_>) -> Result<Option<Deed>, Failure> {
        let events: Vec<wire::LabelEvent> = match address.kind {
            Kind::Issue => {
                let mut events = IssueResourceLabelEvents::builder();
                let events = events.project(address.project).issue(address.iid);
                self.client.list(events.build()).await?
            }
            Kind::MergeRequest => {
                let mut events = MergeRequestResourceLabelEvents::builder();
                let events = events.project(address.project).merge_request(address.iid);
                self.client.list(events.build()).await?
            }
        };
        let puts_it_on = |event: &wire::LabelEvent| {
            let label = event.label.as_ref();
            event.action == "add" && label.is_some_and(|label| label.name == self.labels.trigger)
        };
        let last = events
            .into_iter()
            .filter(puts_it_on)
            .max_by_key(|event| event.created_at);
        Ok(last.map(|event| deed(event.user, event.created_at)))
    }

    pub(super) async fn find_edit(&self, address: Address<'_>) -> Result<Option<Deed>, Failure> {
        let is_edit = |note: &wire::Note| note.system && EDITS.iter().any(|edit| note.body.starts_with(edit));
        let notes = self.notes(address).await?;
        let last = notes.into_iter().filter(is_edit).max_by_key(|note| note.created_at);
        Ok(last.map(|note| deed(note.author, note.created_at)))
    }
}

fn deed(user: Option<wire::User>, at: chrono::DateTime<chrono::Utc>) -> Deed {
    Deed {
        by: user.map(|user| user.username).unwrap_or_default(),
        at,
    }
}
