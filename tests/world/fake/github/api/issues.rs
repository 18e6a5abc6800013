//! Issues: listing, opening, editing, assigning. Pull requests are among them, as on GitHub.

use axum::extract::Path;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::http::header;
use axum::response::IntoResponse;
use axum::response::Response;
use serde_json::Value;

use crate::fake::board::Board as _;
use crate::fake::board::Draft;
use crate::fake::github::api::answer::Answer;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::answer::created;
use crate::fake::github::api::answer::ok;
use crate::fake::github::api::answer::page;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::hub::Viewer;
use crate::fake::github::api::hub::find;
use crate::fake::github::api::hub::find_item;
use crate::fake::github::state::Item;
use crate::fake::github::state::Permission;
use crate::fake::github::state::Time;
use crate::fake::request::Fields;
use crate::fake::request::Query;

/// How long a text may be.
pub const LONGEST_BODY: usize = 65_536;

pub async fn list(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path(place): Path<(String, String)>,
    query: Query,
) -> Answer {
    let issues = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &place)?;
        if !place.has_issues && place.items.is_empty() {
            return Err(Problem::new(StatusCode::GONE, "Issues are disabled for this repo"));
        }
        let mut found: Vec<_> = place
            .items
            .values()
            .filter(|item| !item.is_deleted && asked_for(item, &query))
            .collect();
        match query.value("sort") {
            Some("updated") => found.sort_by_key(|item| (item.updated, item.number)),
            Some("comments") => found.sort_by_key(|item| (item.comments.len(), item.number)),
            _ => found.sort_by_key(|item| item.number),
        }
        if query.value("direction") != Some("asc") {
            found.reverse();
        }
        Ok(found.into_iter().map(|item| view.issue(place, item)).collect())
    })?;
    page(&query, &hub.api(), issues)
}

fn asked_for(item: &Item, query: &Query) -> bool {
    let state = match query.value("state") {
        Some("all") => true,
        Some("closed") => !item.is_open,
        _ => item.is_open,
    };
    let since = query.value("since").and_then(|time| time.parse::<Time>().ok());
    let assignee = match query.value("assignee") {
        None => true,
        Some("none") => item.assignees.is_empty(),
        Some("*") => !item.assignees.is_empty(),
        Some(login) => item.assignees.iter().any(|assignee| assignee == login),
    };
    state
        && assignee
        && query.list("labels").iter().all(|label| item.has_label(label))
        && since.is_none_or(|since| item.updated >= since)
        && query.value("creator").is_none_or(|login| item.author == login)
}

pub async fn one(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Path<(String, String, u64)>,
) -> Answer {
    ok(shown(&hub, &viewer, &(owner, name), number)?)
}

pub async fn create(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path(place): Path<(String, String)>,
    fields: Fields,
) -> Answer {
    let repository = hub.allow(&viewer, &place, Permission::Read)?;
    let title = fields.text("title").filter(|title| !title.is_empty());
    let title = title
        .ok_or_else(|| Problem::invalid("Issue", "title", "missing_field"))?
        .to_owned();
    let body = fields.text("body").map(str::to_owned);
    check_length(body.as_deref())?;
    let number = hub.change(|state| {
        let draft = Draft {
            title,
            text: body,
            author: viewer.login.clone(),
        };
        let item = state.open(&repository, draft, None);
        for label in fields.list("labels").unwrap_or_default() {
            state.add_label(&item, &label, &viewer.login);
        }
        let assignees = fields.list("assignees").unwrap_or_default();
        state.assign(&item, &viewer.login, &assignees);
        item.number
    });
    created(shown(&hub, &viewer, &place, number)?)
}

pub async fn edit(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Path<(String, String, u64)>,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let item = hub.allow_item(&viewer, &place, number, Permission::Triage)?;
    check_length(fields.text("body"))?;
    hub.change(|state| {
        let actor = viewer.login.as_str();
        if let Some(title) = fields.text("title") {
            state.rename(&item, actor, title);
        }
        if fields.has("body") {
            state.rewrite(&item, actor, fields.text("body"));
        }
        if let Some(labels) = fields.list("labels") {
            state.set_labels(&item, &labels, actor);
        }
        if let Some(assignees) = fields.list("assignees") {
            state.assign(&item, actor, &assignees);
        }
        match fields.text("state") {
            Some("closed") => {
                let reason = fields.text("state_reason").unwrap_or("completed");
                state.close_because(&item, actor, reason);
            }
            Some("open") => state.reopen(&item, actor),
            _ => {}
        }
    });
    ok(shown(&hub, &viewer, &place, number)?)
}

pub async fn assign(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Path<(String, String, u64)>,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let named = fields.list("assignees").unwrap_or_default();
    // Whoever cannot be assigned is left out without a word.
    let known = hub.read(|state| find(state, &viewer, &place).map(|place| place.members.clone()))?;
    change_assignees(&hub, &viewer, &place, number, |assignees| {
        let new = named.into_iter().filter(|login| known.contains_key(login));
        let new: Vec<_> = new.filter(|login| !assignees.contains(login)).collect();
        assignees.extend(new);
    })?;
    created(shown(&hub, &viewer, &place, number)?)
}

pub async fn unassign(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Path<(String, String, u64)>,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let named = fields.list("assignees").unwrap_or_default();
    change_assignees(&hub, &viewer, &place, number, |assignees| {
        assignees.retain(|login| !named.contains(login));
    })?;
    ok(shown(&hub, &viewer, &place, number)?)
}

fn change_assignees(
    hub: &Hub,
    viewer: &Viewer,
    place: &(String, String),
    number: u64,
    alter: impl FnOnce(&mut Vec<String>),
) -> Result<(), Problem> {
    let item = hub.allow_item(viewer, place, number, Permission::Triage)?;
    let mut assignees = hub.read(|state| state.item(&item).map(|item| item.assignees.clone()).unwrap_or_default());
    alter(&mut assignees);
    hub.change(|state| state.assign(&item, &viewer.login, &assignees));
    Ok(())
}

pub fn check_length(body: Option<&str>) -> Result<(), Problem> {
    if body.is_some_and(|body| body.chars().count() > LONGEST_BODY) {
        return Err(Problem::custom(
            "Issue",
            "body is too long (maximum is 65536 characters)",
        ));
    }
    Ok(())
}

fn shown(hub: &Hub, viewer: &Viewer, place: &(String, String), number: u64) -> Result<Value, Problem> {
    hub.show(viewer, |view| {
        let place = find(view.state, viewer, place)?;
        Ok(view.issue(place, find_item(place, number)?))
    })
}

/// Something that somebody dropped into a text. No token opens it, as on GitHub.
pub async fn attachment(Shared(hub): Shared<Hub>, headers: HeaderMap, Path(id): Path<String>) -> Response {
    if headers.contains_key(header::AUTHORIZATION) {
        return StatusCode::NOT_FOUND.into_response();
    }
    match hub.read(|state| state.attachments.get(&id).cloned()) {
        Some(bytes) => ([(header::CONTENT_TYPE, "image/png")], bytes).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
