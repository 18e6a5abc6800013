//! Labels of a project, and when they were put on and taken off.

use axum::extract::Path;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use serde_json::json;

use crate::fake::board::Board as _;
use crate::fake::gitlab::api::answer::Answer;
use crate::fake::gitlab::api::answer::Problem;
use crate::fake::gitlab::api::answer::created;
use crate::fake::gitlab::api::answer::ok;
use crate::fake::gitlab::api::answer::page;
use crate::fake::gitlab::api::lab::Lab;
use crate::fake::gitlab::api::lab::Spot;
use crate::fake::gitlab::api::lab::Viewer;
use crate::fake::gitlab::api::lab::find;
use crate::fake::gitlab::api::lab::find_item;
use crate::fake::gitlab::api::view;
use crate::fake::gitlab::api::view::text;
use crate::fake::gitlab::state::Access;
use crate::fake::gitlab::state::Label;
use crate::fake::gitlab::state::Place;
use crate::fake::gitlab::state::now;
use crate::fake::history::What;
use crate::fake::request::Fields;
use crate::fake::request::Query;

pub async fn list(Shared(lab): Shared<Lab>, viewer: Viewer, Path(project): Path<String>, query: Query) -> Answer {
    let labels = lab.show(&viewer, |view| {
        let project = find(view.state, &viewer, &project)?;
        Ok(project.labels.iter().map(|label| view::label(project, label)).collect())
    })?;
    page(&query, &lab.api(), labels)
}

pub async fn one(Shared(lab): Shared<Lab>, viewer: Viewer, Path((project, label)): Path<(String, String)>) -> Answer {
    ok(lab.show(&viewer, |view| {
        let project = find(view.state, &viewer, &project)?;
        let label = project.label(&label).ok_or_else(|| Problem::not_found("Label"))?;
        Ok(view::label(project, label))
    })?)
}

pub async fn create(Shared(lab): Shared<Lab>, viewer: Viewer, Path(project): Path<String>, fields: Fields) -> Answer {
    let project = lab.allow(&viewer, &project, Access::Reporter)?;
    let name = fields.text("name").ok_or_else(|| Problem::missing("name"))?;
    let color = fields.text("color").ok_or_else(|| Problem::missing("color"))?;
    let description = fields.text("description").map(str::to_owned);
    // A color is a number with a '#', or a name that style sheets know.
    let is_number = color
        .strip_prefix('#')
        .is_some_and(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
    if !is_number && !color.bytes().all(|letter| letter.is_ascii_alphabetic()) {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            json!({"color": ["must be a valid color code"]}),
        ));
    }
    lab.change(|state| {
        let id = state.next_id();
        let project = state
            .project_mut(&project)
            .ok_or_else(|| Problem::not_found("Project"))?;
        if project.label(name).is_some() {
            return Err(Problem::new(StatusCode::CONFLICT, json!("Label already exists")));
        }
        project.labels.push(Label {
            id,
            name: name.to_owned(),
            color: color.to_owned(),
            description,
            updated: now(),
        });
        Ok(())
    })?;
    created(lab.show(&viewer, |view| {
        let project = find(view.state, &viewer, &project)?;
        Ok(view::label(
            project,
            project.label(name).ok_or_else(|| Problem::not_found("Label"))?,
        ))
    })?)
}

pub async fn events(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, query: Query) -> Answer {
    let mut events: Vec<_> = lab.show(&viewer, |view| {
        let (project, item) = find_item(view.state, &viewer, &spot)?;
        let kind = if item.merge.is_some() { "MergeRequest" } else { "Issue" };
        let events = item.history.iter().filter_map(|happening| {
            let (action, name) = match &happening.what {
                What::Labeled(name) => ("add", name),
                What::Unlabeled(name) => ("remove", name),
                _ => return None,
            };
            Some(json!({
                "id": happening.id, "user": view.user(&happening.actor), "created_at": text(happening.when),
                "resource_type": kind, "resource_id": item.id, "action": action,
                "label": project.label(name).map(|label| json!({
                    "id": label.id, "name": label.name, "color": label.color, "description": label.description,
                })),
            }))
        });
        Ok::<_, Problem>(events.collect())
    })?;
    let asked = Place {
        project: spot.project,
        kind: spot.kind,
        iid: spot.iid,
    };
    if lab.change(|state| state.is_late(&asked)) {
        events.pop();
    }
    page(&query, &lab.api(), events)
}
