//! The history of an item: who asked for the work, and who changed the item.
//!
//! GitLab keeps a history of labels, and writes a note below the item when its title, its
//! description, its target branch or its commits change. The history names labels as they are
//! called now: whoever renames a label that a maintainer put on makes the maintainer the one who
//! asked for work. So the label has to be older than the event that counts.

use async_trait::async_trait;
use chrono::{DateTime, SubsecRound, Utc};
use serde_json::{Value, json};

use crate::forge::gitlab::http::endpoints::Below;
use crate::forge::gitlab::{Api, schema};
use crate::forge::http::failure::Failure;
use crate::forge::item::address::ItemAddress;
use crate::forge::platform::HistoryApi;
use crate::forge::{Edit, Item, ItemEvent};
use crate::task::id::ItemKind;

/// Beginnings of GitLab's notes on edits of title or text, in every language of its pages. A
/// description that is changed and has a box ticked in the same save gets a note about the box
/// alone.
const OF_WORDS: [&str; 6] = [
    "changed the description",
    "changed title",
    "changed target branch",
    "marked the checklist item",
    "marked the task",
    "marked this merge request as",
];

const LABELS: &str = "query($project: ID!, $label: String!) { project(fullPath: $project) { \
    labels(searchTerm: $label, includeAncestorGroups: true) { nodes { id title updatedAt } } } }";

const LAST_EDIT: &str = "query($project: ID!, $iid: String!) { project(fullPath: $project) { \
    workItems(iid: $iid) { nodes { widgets { ... on WorkItemWidgetDescription { \
    lastEditedAt lastEditedBy { id username } } } } } } }";

#[async_trait]
impl HistoryApi for Api {
    async fn find_trigger(&self, address: ItemAddress<'_>) -> Result<Option<ItemEvent>, Failure> {
        let events = Below::get(address, "/resource_label_events");
        let events: Vec<schema::LabelEvent> = self.client.list(events.build()).await?;
        let is_of_trigger = |event: &schema::LabelEvent| {
            let label = event.label.as_ref();
            let is_of_label = matches!(event.action.as_str(), "add" | "remove");
            is_of_label && label.is_some_and(|label| label.name == self.settings.labels.trigger)
        };
        let events = events.into_iter().filter(is_of_trigger);
        let last = events.max_by_key(|event| event.created_at);
        // After a removal somebody else may have put the label on, whom the history does not show
        // yet: whoever put it on before has not asked for this.
        let Some(put_on) = last.filter(|event| event.action == "add") else {
            return Ok(None);
        };
        let mut event = item_event(put_on.user, put_on.created_at);
        let labels = self.trigger_labels(address.repository).await?;
        let number = put_on.label.map(|label| label.id);
        if labels.is_some_and(|labels| !is_as_old(&labels, number, event.at)) {
            tracing::warn!(
                item = %address,
                "the label {} was renamed or changed after it was put on, so nobody is known to have asked for work",
                self.settings.labels.trigger
            );
            // An account that is allowed by its id is recognised without its name.
            event.by = String::new();
            event.by_id = None;
        }
        Ok(Some(event))
    }

    /// There is no list of assignments as there is of labels: GitLab writes a note.
    async fn find_assignment(&self, address: ItemAddress<'_>) -> Result<Option<ItemEvent>, Failure> {
        let bot = self.own_login().await?;
        let notes = self.notes(address).await?.into_iter();
        let last = notes
            .filter(|note| note.system && tells_of_assignment(&note.body, bot))
            .max_by_key(|note| note.created_at);
        Ok(last.map(|note| item_event(note.author, note.created_at)))
    }

    async fn find_edits(&self, address: ItemAddress<'_>, _: &Item, since: DateTime<Utc>) -> Result<Vec<Edit>, Failure> {
        let mut edits = Vec::new();
        for note in self.notes(address).await? {
            if !note.system || note.created_at < since {
                continue;
            }
            let is_of_words = OF_WORDS.iter().any(|beginning| note.body.starts_with(beginning));
            let is_of_head = tells_of_commits(&note.body);
            let event = item_event(note.author, note.created_at);
            if is_of_words {
                edits.push(Edit::of_text(event));
            } else if is_of_head {
                edits.push(Edit::of_head(event));
            }
        }
        edits.extend(self.last_edit(address, since).await?.map(Edit::of_text));
        Ok(edits)
    }
}

impl Api {
    /// Returns the labels of the project and its groups that have the trigger's name; `None` if
    /// this GitLab does not report when a label was changed.
    async fn trigger_labels(&self, project: &str) -> Result<Option<Vec<schema::GraphLabel>>, Failure> {
        let trigger = &self.settings.labels.trigger;
        let question = json!({ "query": LABELS, "variables": {"project": project, "label": trigger} });
        let labels = self
            .ask_project_graph(&question)
            .await?
            .and_then(|project| project.labels);
        Ok(labels.map(|labels| {
            let named = labels.nodes.into_iter().filter(|label| label.title == *trigger);
            named.collect()
        }))
    }

    /// Returns the last edit of an issue's text, which does not depend on how notes are worded.
    /// GitLab does not report it for merge requests.
    async fn last_edit(&self, address: ItemAddress<'_>, since: DateTime<Utc>) -> Result<Option<ItemEvent>, Failure> {
        if address.kind == ItemKind::MergeRequest {
            return Ok(None);
        }
        let variables = json!({"project": address.repository, "iid": address.number.to_string()});
        let question = json!({ "query": LAST_EDIT, "variables": variables });
        let items = self
            .ask_project_graph(&question)
            .await?
            .and_then(|project| project.work_items);
        let widgets = items
            .into_iter()
            .flat_map(|items| items.nodes)
            .flat_map(|item| item.widgets);
        let edits = widgets.filter_map(|widget| {
            let by = widget.last_edited_by.map(schema::User::from);
            Some(item_event(by, widget.last_edited_at?))
        });
        // Told in whole seconds, so an edit in the second of the label may have come after it.
        let since = since.trunc_subsecs(0);
        Ok(edits.filter(|edit| edit.at >= since).max_by_key(|edit| edit.at))
    }

    /// Queries the GraphQL API about a project; `None` if this GitLab does not know the query.
    async fn ask_project_graph(&self, question: &Value) -> Result<Option<schema::GraphProject>, Failure> {
        match self.client.ask_graph::<schema::GraphAnswer>(question).await {
            Ok(answer) => Ok(answer.data.and_then(|data| data.project)),
            Err(failure) if failure.status().is_some() => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

/// Tells whether the label of an event is among `labels` and was not changed after it.
fn is_as_old(labels: &[schema::GraphLabel], number: Option<u64>, at: DateTime<Utc>) -> bool {
    labels
        .iter()
        .any(|label| label.number() == number && label.updated_at <= at)
}

/// Tells whether a note of GitLab's reports pushed commits, such as `added 2 commits`.
fn tells_of_commits(note: &str) -> bool {
    let Some((count, what)) = note.strip_prefix("added ").and_then(|rest| rest.split_once(' ')) else {
        return false;
    };
    count.parse::<u64>().is_ok() && what.starts_with("commit")
}

/// Tells whether a note of GitLab's says that somebody was assigned, such as `assigned to @ann and
/// @bob and unassigned @eve`.
fn tells_of_assignment(note: &str, account: &str) -> bool {
    let Some(names) = note.strip_prefix("assigned to ") else {
        return false;
    };
    let names = names.split_once(" and unassigned ").map_or(names, |(names, _)| names);
    let mut names = names.split([' ', ',']).filter_map(|word| word.strip_prefix('@'));
    names.any(|name| name.eq_ignore_ascii_case(account))
}

fn item_event(user: Option<schema::User>, at: DateTime<Utc>) -> ItemEvent {
    ItemEvent {
        by_id: user.as_ref().and_then(|user| user.id),
        by: user.map(|user| user.username).unwrap_or_default(),
        at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::TimeDelta;

    #[test]
    fn notes_about_commits_are_told_from_other_notes() {
        let told = [
            "added 1 commit\n\n<ul><li>x</li></ul>",
            "added 12 commits",
            "added 1h of time spent",
            "added ~3 label",
            "added 1",
        ];
        assert_eq!(told.map(tells_of_commits), [true, true, false, false, false]);
    }

    #[test]
    fn notes_about_assignments_name_whoever_was_assigned() {
        for (note, expected) in [
            ("assigned to @bot", true),
            ("assigned to @ann and @Bot", true),
            ("assigned to @ann, @bob, and @bot and unassigned @eve", true),
            ("assigned to @ann and unassigned @bot", false),
            ("unassigned @bot", false),
            ("assigned to @bot2", false),
            ("changed title from **a** to **assigned to @bot**", false),
        ] {
            assert_eq!(tells_of_assignment(note, "bot"), expected, "{note}");
        }
    }

    #[test]
    fn a_label_that_was_changed_after_the_event_or_is_another_one_does_not_count() {
        let at = |minute| DateTime::<Utc>::UNIX_EPOCH + TimeDelta::minutes(minute);
        let label = |number: u64, minute| schema::GraphLabel {
            id: format!("gid://gitlab/GroupLabel/{number}"),
            title: "coding agent".to_owned(),
            updated_at: at(minute),
        };
        let labels = [label(7, 10), label(8, 1)];
        let counts = |number, minute| is_as_old(&labels, number, at(minute));
        assert_eq!(
            [
                counts(Some(7), 10),
                counts(Some(7), 9),
                counts(Some(8), 9),
                counts(Some(9), 20),
                counts(None, 20)
            ],
            [true, false, true, false, false]
        );
    }
}
