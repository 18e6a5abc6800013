//! Who asked for the work, and who changed its text.
//!
//! Labels and titles stand in the history of the item. Of the text GitHub's REST API does not tell whether it was ever
//! changed; its GraphQL API does, and is asked for nothing else.

use serde_json::json;

use super::client::{Rights, path};
use super::{Address, GitHub, wire};
use crate::forge::Deed;
use crate::forge::failure::Failure;

const LAST_EDIT: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { issueOrPullRequest(number: $number) { \
    ... on Issue { lastEditedAt editor { login } } ... on PullRequest { lastEditedAt editor { login } } } } }";

impl GitHub {
    pub(super) async fn find_trigger(&self, address: Address<'_>) -> Result<Option<Deed>, Failure> {
        let trigger = &self.labels.trigger;
        let puts_it_on = |event: &wire::Event| {
            let label = event.label.as_ref();
            event.kind == "labeled" && label.is_some_and(|label| label.name.to_lowercase() == trigger.to_lowercase())
        };
        self.last_event(address, puts_it_on).await
    }

    pub(super) async fn find_edit(&self, address: Address<'_>) -> Result<Option<Deed>, Failure> {
        let renamed = self.last_event(address, |event| event.kind == "renamed").await?;
        let rewritten = self.last_rewrite(address).await?;
        Ok(renamed.into_iter().chain(rewritten).max_by_key(|edit| edit.at))
    }

    async fn last_event(
        &self,
        address: Address<'_>,
        is_meant: impl Fn(&wire::Event) -> bool,
    ) -> Result<Option<Deed>, Failure> {
        let at = path(
            address.repository,
            &format!("/issues/{}/events?per_page=100", address.number),
        );
        let events: Vec<wire::Event> = self.client.list(Rights::Repository(address.repository), &at).await?;
        let last = events.into_iter().filter(is_meant).max_by_key(|event| event.created_at);
        Ok(last.map(|event| Deed {
            by: event.actor.map(|actor| actor.login).unwrap_or_default(),
            at: event.created_at,
        }))
    }

    async fn last_rewrite(&self, address: Address<'_>) -> Result<Option<Deed>, Failure> {
        let (owner, name) = address.repository.split_once('/').unwrap_or_default();
        let question = json!({
            "query": LAST_EDIT,
            "variables": {"owner": owner, "name": name, "number": address.number},
        });
        let rights = Rights::Repository(address.repository);
        let answer: wire::GraphAnswer = self.client.ask_graph(rights, &question).await?;
        let item = match answer.data {
            Some(data) => data.repository.and_then(|repository| repository.item),
            None => None,
        };
        let item = item.ok_or_else(|| {
            let words: Vec<String> = answer.errors.into_iter().map(|error| error.message).collect();
            Failure::unreadable(format!("GraphQL knows nothing of it: {}", words.join("; ")))
        })?;
        Ok(item.last_edited_at.map(|at| Deed {
            by: item.editor.map(|editor| editor.login).unwrap_or_default(),
            at,
        }))
    }
}
