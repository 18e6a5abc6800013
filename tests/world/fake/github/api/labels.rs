//! Labels: of a repository, and on an issue.

use axum::extract::Path;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use serde_json::Value;

use crate::fake::board::Board as _;
use crate::fake::github::api::answer::Answer;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::answer::created;
use crate::fake::github::api::answer::no_content;
use crate::fake::github::api::answer::ok;
use crate::fake::github::api::answer::page;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::hub::Viewer;
use crate::fake::github::api::hub::find;
use crate::fake::github::api::hub::find_item;
use crate::fake::github::state::Label;
use crate::fake::github::state::Permission;
use crate::fake::github::state::Place;
use crate::fake::request::Fields;
use crate::fake::request::Query;

type Numbered = Path<(String, String, u64)>;

pub async fn list(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path(place): Path<(String, String)>,
    query: Query,
) -> Answer {
    let labels = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &place)?;
        Ok(place.labels.iter().map(|label| view.label(place, label)).collect())
    })?;
    page(&query, &hub.api(), labels)
}

pub async fn one(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, label)): Path<(String, String, String)>,
) -> Answer {
    ok(hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let label = place.label(&label).ok_or_else(Problem::not_found)?;
        Ok(view.label(place, label))
    })?)
}

pub async fn create(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path(place): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    let repository = hub.allow(&viewer, &place, Permission::Triage)?;
    let name = fields.text("name").unwrap_or_default().to_owned();
    let color = fields.text("color").unwrap_or("ededed").to_owned();
    let description = fields.text("description").map(str::to_owned);
    check(&name, &color, description.as_deref())?;
    hub.change(|state| {
        let id = state.next_id();
        let place = state.repository_mut(&repository).ok_or_else(Problem::not_found)?;
        if place.label(&name).is_some() {
            return Err(Problem::invalid("Label", "name", "already_exists"));
        }
        place.labels.push(Label {
            id,
            name: name.clone(),
            color,
            description,
        });
        Ok(())
    })?;
    created(hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &place)?;
        Ok(view.label(place, place.label(&name).ok_or_else(Problem::not_found)?))
    })?)
}

fn check(name: &str, color: &str, description: Option<&str>) -> Result<(), Problem> {
    if name.is_empty() {
        return Err(Problem::invalid("Label", "name", "missing_field"));
    }
    if name.chars().count() > 50 {
        return Err(Problem::custom("Label", "name is too long (maximum is 50 characters)"));
    }
    if color.len() != 6 || !color.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(Problem::invalid("Label", "color", "invalid"));
    }
    if description.is_some_and(|text| text.chars().count() > 100) {
        return Err(Problem::custom(
            "Label",
            "description is too long (maximum is 100 characters)",
        ));
    }
    Ok(())
}

pub async fn of_item(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    query: Query,
) -> Answer {
    page(&query, &hub.api(), shown(&hub, &viewer, &(owner, name), number)?)
}

pub async fn add(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let item = writable(&hub, &viewer, &place, number)?;
    let labels = wanted(&fields)?;
    hub.change(|state| {
        for label in &labels {
            state.add_label(&item, label, &viewer.login);
        }
    });
    ok(Value::Array(shown(&hub, &viewer, &place, number)?))
}

pub async fn set(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let item = writable(&hub, &viewer, &place, number)?;
    let labels = wanted(&fields)?;
    hub.change(|state| state.set_labels(&item, &labels, &viewer.login));
    ok(Value::Array(shown(&hub, &viewer, &place, number)?))
}

pub async fn clear(Shared(hub): Shared<Hub>, viewer: Viewer, Path((owner, name, number)): Numbered) -> Answer {
    let item = writable(&hub, &viewer, &(owner, name), number)?;
    hub.change(|state| state.set_labels(&item, &[], &viewer.login));
    no_content()
}

pub async fn remove(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number, label)): Path<(String, String, u64, String)>,
) -> Answer {
    let place = (owner, name);
    let item = writable(&hub, &viewer, &place, number)?;
    if !hub.change(|state| state.remove_label(&item, &label, &viewer.login)) {
        return Err(Problem::new(StatusCode::NOT_FOUND, "Label does not exist"));
    }
    ok(Value::Array(shown(&hub, &viewer, &place, number)?))
}

fn writable(hub: &Hub, viewer: &Viewer, place: &(String, String), number: u64) -> Result<Place, Problem> {
    hub.allow_item(viewer, place, number, Permission::Triage)
}

/// Reads the labels of a body: names, or objects with names.
fn wanted(fields: &Fields) -> Result<Vec<String>, Problem> {
    let labels = fields.0.get("labels").and_then(Value::as_array);
    let labels = labels.ok_or_else(|| Problem::invalid("Label", "labels", "missing_field"))?;
    let names = labels
        .iter()
        .map(|label| label.as_str().or_else(|| label["name"].as_str()));
    let names = names.map(|name| name.map(str::to_owned)).collect::<Option<Vec<_>>>();
    names.ok_or_else(|| Problem::invalid("Label", "name", "invalid"))
}

fn shown(hub: &Hub, viewer: &Viewer, place: &(String, String), number: u64) -> Result<Vec<Value>, Problem> {
    hub.show(viewer, |view| {
        let place = find(view.state, viewer, place)?;
        Ok(view.labels(place, find_item(place, number)?))
    })
}
