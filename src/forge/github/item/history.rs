//! The history of an item: who asked for the work, and who changed the item.
//!
//! Labels, titles and target branches stand in the history of the item. Of the text GitHub's REST
//! API does not tell whether it was ever changed; its GraphQL API tells of each edit. A compatible
//! server may lack that one: then a text that changes after the admission is known from its digest.
//! Neither API tells who pushed to the head branch: dates and authors of commits are whatever their
//! maker writes. The activities of the repository do.

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use http::StatusCode;
use serde_json::json;

use crate::forge::github::http::TokenScope;
use crate::forge::github::http::{encoded, path};
use crate::forge::github::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::HistoryApi;
use crate::forge::{ChangeHead, Edit, Item, ItemEvent};

/// Maximum number of edits, and of activities, that are asked for. If there are more since the
/// label was set, somebody may be hiding one.
const MOST: usize = 100;

const EDITS: &str = "query($owner: String!, $name: String!, $number: Int!) { \
    repository(owner: $owner, name: $name) { issueOrPullRequest(number: $number) { \
    ... on Issue { createdAt lastEditedAt editor { ...who } \
    userContentEdits(first: 100) { nodes { editedAt editor { ...who } } pageInfo { hasNextPage } } } \
    ... on PullRequest { createdAt lastEditedAt editor { ...who } \
    userContentEdits(first: 100) { nodes { editedAt editor { ...who } } pageInfo { hasNextPage } } } } } } \
    fragment who on Actor { __typename login ... on User { databaseId } ... on Bot { databaseId } }";

#[async_trait]
impl HistoryApi for Api {
    async fn find_trigger(&self, address: ItemAddress<'_>) -> Result<Option<ItemEvent>, Failure> {
        let trigger = self.settings.labels.trigger.to_lowercase();
        let is_of_trigger = |event: &schema::Event| {
            let label = event.label.as_ref();
            let is_of_label = matches!(event.kind.as_str(), "labeled" | "unlabeled");
            is_of_label && label.is_some_and(|label| label.name.to_lowercase() == trigger)
        };
        let events = self.events(address).await?.into_iter();
        let last = events.filter(is_of_trigger).max_by_key(|event| event.created_at);
        // After a removal somebody else may have put the label on, whom the history does not show
        // yet: whoever put it on before has not asked for this.
        let put_on = last.filter(|event| event.kind == "labeled");
        Ok(put_on.map(|event| item_event(event.actor, event.created_at)))
    }

    /// GitHub has told the actor of such an event as whoever is assigned as well as whoever
    /// assigned; `assigner` is never the former.
    async fn find_assignment(&self, address: ItemAddress<'_>) -> Result<Option<ItemEvent>, Failure> {
        let bot = self.own_login().await?;
        let events = self.events(address).await?.into_iter();
        let is_bot =
            |user: &Option<schema::User>| user.as_ref().is_some_and(|user| user.login.eq_ignore_ascii_case(bot));
        let last = events
            .filter(|event| event.kind == "assigned" && is_bot(&event.assignee))
            .max_by_key(|event| event.created_at);
        Ok(last.map(|event| {
            let by = event
                .assigner
                .or(event.actor.filter(|actor| !actor.login.eq_ignore_ascii_case(bot)));
            item_event(by, event.created_at)
        }))
    }

    async fn find_edits(
        &self,
        address: ItemAddress<'_>,
        item: &Item,
        since: DateTime<Utc>,
    ) -> Result<Vec<Edit>, Failure> {
        let events = self.events(address).await?.into_iter();
        let of_words = events.filter(|event| matches!(event.kind.as_str(), "renamed" | "base_ref_changed"));
        let mut words: Vec<ItemEvent> = of_words
            .map(|event| item_event(event.actor, event.created_at))
            .collect();
        words.extend(self.rewrites(address, since).await?);
        words.retain(|edit| edit.at >= since);
        let mut edits: Vec<Edit> = words.into_iter().map(Edit::of_text).collect();
        // Only whoever may write pushes to the repository itself.
        if let Some(change) = item.change.as_ref().filter(|change| change.is_fork) {
            let pushes = self.pushes(address, change, since).await?;
            edits.extend(pushes.into_iter().map(Edit::of_head));
        }
        Ok(edits)
    }
}

impl Api {
    async fn events(&self, address: ItemAddress<'_>) -> Result<Vec<schema::Event>, Failure> {
        let at = path(
            address.repository,
            &format!("/issues/{}/events?per_page=100", address.number),
        );
        self.client.list(TokenScope::Repository(address.repository), &at).await
    }

    /// Returns the edits of the item's text, or none if the server has no API that tells of them.
    async fn rewrites(&self, address: ItemAddress<'_>, since: DateTime<Utc>) -> Result<Vec<ItemEvent>, Failure> {
        let (owner, name) = address.repository.split_once('/').unwrap_or_default();
        let question = json!({
            "query": EDITS,
            "variables": {"owner": owner, "name": name, "number": address.number},
        });
        let scope = TokenScope::Repository(address.repository);
        let Some(answer) = self.client.ask_graph::<schema::GraphAnswer>(scope, &question).await? else {
            tracing::warn!(
                item = %address,
                "the server has no GraphQL API, so nobody is known to have changed the text before it was accepted"
            );
            return Ok(Vec::new());
        };
        let item = match answer.data {
            Some(data) => data.repository.and_then(|repository| repository.item),
            None => None,
        };
        let item = item.ok_or_else(|| {
            let words: Vec<String> = answer.errors.into_iter().map(|error| error.message).collect();
            Failure::unreadable(format!("GraphQL knows nothing of it: {}", words.join("; ")))
        })?;
        let mut rewrites: Vec<ItemEvent> = item
            .last_edited_at
            .map(|at| edited(item.editor, at))
            .into_iter()
            .collect();
        if let Some(edits) = item.user_content_edits {
            let are_more = edits.page_info.has_next_page;
            let told = edits.nodes.into_iter().flatten();
            let mut told: Vec<ItemEvent> = told.map(|edit| edited(edit.editor, edit.edited_at)).collect();
            // The oldest is no edit, but the text as it was opened.
            told.pop_if(|oldest| !are_more && oldest.at <= item.created_at);
            rewrites.extend(hidden(&told, are_more, since));
            rewrites.extend(told);
        }
        Ok(rewrites)
    }

    /// Returns who pushed to the head branch, where the token may see that.
    async fn pushes(
        &self,
        address: ItemAddress<'_>,
        change: &ChangeHead,
        since: DateTime<Utc>,
    ) -> Result<Vec<ItemEvent>, Failure> {
        let Some(fork) = &change.head_repository else {
            return Ok(Vec::new());
        };
        let branch = encoded(&format!("refs/heads/{}", change.head_branch));
        let at = path(fork, &format!("/activity?ref={branch}&per_page={MOST}"));
        let scope = TokenScope::Repository(address.repository);
        let told: Vec<schema::Activity> = match self.client.get(scope, &at).await {
            Ok(told) => told,
            // Older servers have no such list, and a token may not reach into the fork: what moves
            // after the admission is known from the head that was noted then.
            Err(failure) if failure.is_missing() || failure.status() == Some(StatusCode::FORBIDDEN) => Vec::new(),
            Err(failure) => return Err(failure),
        };
        let are_more = told.len() >= MOST;
        let mut told: Vec<ItemEvent> = told
            .into_iter()
            .map(|activity| item_event(activity.actor, activity.timestamp))
            .collect();
        told.extend(hidden(&told, are_more, since));
        told.retain(|push| push.at >= since);
        Ok(told)
    }
}

/// Returns an event by an unknown account if the list, newest first, ended before it reached
/// `since`.
fn hidden(told: &[ItemEvent], are_more: bool, since: DateTime<Utc>) -> Option<ItemEvent> {
    let oldest = told.iter().map(|event| event.at).min()?;
    (are_more && oldest >= since).then(|| item_event(None, oldest))
}

/// Returns an edit of which GraphQL tells.
fn edited(user: Option<schema::User>, at: DateTime<Utc>) -> ItemEvent {
    item_event(user.map(schema::User::named_as_in_rest), at)
}

fn item_event(user: Option<schema::User>, at: DateTime<Utc>) -> ItemEvent {
    ItemEvent {
        by_id: user.as_ref().and_then(|user| user.id),
        by: user.map(|user| user.login).unwrap_or_default(),
        at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn the_author_of_an_edit_is_called_as_in_all_other_answers() {
        let by = |user: &str| edited(serde_json::from_str(user).unwrap(), DateTime::UNIX_EPOCH);
        let app = by(r#"{"__typename": "Bot", "login": "helper", "databaseId": 7}"#);
        assert_eq!((app.by.as_str(), app.by_id), ("helper[bot]", Some(7)));
        let person = by(r#"{"__typename": "User", "login": "helper", "databaseId": 8}"#);
        assert_eq!((person.by.as_str(), person.by_id), ("helper", Some(8)));
    }

    #[test]
    fn a_list_that_ends_before_the_label_hides_something() {
        let at = |minute| DateTime::<Utc>::UNIX_EPOCH + TimeDelta::minutes(minute);
        let told = [9, 7, 5].map(|minute| item_event(None, at(minute)));
        let hides = |are_more, since| hidden(&told, are_more, at(since)).is_some();
        assert_eq!(
            [hides(true, 4), hides(true, 5), hides(true, 6), hides(false, 4)],
            [true, true, false, false]
        );
        assert_eq!(hidden(&[], true, at(0)), None);
    }
}
