//! The questions of the GraphQL API that the fake knows: when labels were changed, and who edited
//! an issue the last time.

use axum::extract::State as Shared;
use serde_json::Value;
use serde_json::json;

use crate::fake::gitlab::api::answer::Answer;
use crate::fake::gitlab::api::answer::ok;
use crate::fake::gitlab::api::lab::Lab;
use crate::fake::gitlab::api::lab::Spot;
use crate::fake::gitlab::api::lab::Viewer;
use crate::fake::gitlab::api::lab::find;
use crate::fake::gitlab::api::lab::find_item;
use crate::fake::gitlab::api::view::View;
use crate::fake::gitlab::state::Kind;
use crate::fake::gitlab::state::Time;
use crate::fake::request::Fields;

/// The words that a question about labels must have, in this order.
const LABELS: [&str; 3] = [
    "project(fullPath: $project)",
    "labels(searchTerm: $label, includeAncestorGroups: true)",
    "nodes { id title updatedAt }",
];

/// The words that a question about the last edit must have, in this order.
const LAST_EDIT: [&str; 5] = [
    "project(fullPath: $project)",
    "workItems(iid: $iid)",
    "... on WorkItemWidgetDescription",
    "lastEditedAt",
    "lastEditedBy { id username }",
];

pub async fn answer(Shared(lab): Shared<Lab>, viewer: Viewer, fields: Fields) -> Answer {
    let question = fields.text("query").unwrap_or_default();
    let holds = |parts: &[&str]| {
        parts
            .iter()
            .try_fold(question, |rest, part| rest.split_once(part).map(|(_, rest)| rest))
            .is_some()
    };
    let variables = fields.0.get("variables").cloned().unwrap_or_default();
    let named = |name: &str| variables[name].as_str().unwrap_or_default().to_owned();
    let project = named("project");
    let found = lab.show(&viewer, |view| {
        if holds(&LABELS) {
            labels(view, &viewer, &project, &named("label"))
        } else if holds(&LAST_EDIT) {
            last_edit(view, &viewer, &project, &named("iid"))
        } else {
            None
        }
    });
    let errors = json!([{"message": "The resource that you are attempting to access does not exist"}]);
    ok(match found {
        Some(found) => json!({"data": {"project": found}}),
        None => json!({"data": {"project": null}, "errors": errors}),
    })
}

fn labels(view: View<'_>, viewer: &Viewer, project: &str, wanted: &str) -> Option<Value> {
    let project = find(view.state, viewer, project).ok()?;
    let found = project.labels.iter().filter(|label| label.name.contains(wanted));
    let nodes: Vec<_> = found
        .map(|label| {
            let id = format!("gid://gitlab/ProjectLabel/{}", label.id);
            json!({"id": id, "title": label.name, "updatedAt": text(label.updated)})
        })
        .collect();
    Some(json!({"labels": {"nodes": nodes}}))
}

fn last_edit(view: View<'_>, viewer: &Viewer, project: &str, iid: &str) -> Option<Value> {
    let spot = Spot {
        project: project.to_owned(),
        kind: Kind::Issue,
        iid: iid.parse().ok()?,
    };
    let (_, item) = find_item(view.state, viewer, &spot).ok()?;
    let (at, by) = item.edited.as_ref().map_or((Value::Null, Value::Null), |(at, by)| {
        let id = format!("gid://gitlab/User/{}", view.state.id_of(by));
        (json!(text(*at)), json!({"id": id, "username": by}))
    });
    let description = json!({"lastEditedAt": at, "lastEditedBy": by});
    Some(json!({"workItems": {"nodes": [{"widgets": [{}, description, {}]}]}}))
}

/// Times are told in whole seconds here.
fn text(time: Time) -> String {
    time.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}
