//! Issues and merge requests: listing, opening, editing, deleting.

use axum::extract::Path;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use serde_json::Value;
use serde_json::json;

use crate::fake::board::Board as _;
use crate::fake::board::Draft;
use crate::fake::gitlab::api::answer::Answer;
use crate::fake::gitlab::api::answer::Problem;
use crate::fake::gitlab::api::answer::created;
use crate::fake::gitlab::api::answer::no_content;
use crate::fake::gitlab::api::answer::ok;
use crate::fake::gitlab::api::answer::page;
use crate::fake::gitlab::api::lab::Lab;
use crate::fake::gitlab::api::lab::Spot;
use crate::fake::gitlab::api::lab::Viewer;
use crate::fake::gitlab::api::lab::find;
use crate::fake::gitlab::api::lab::find_item;
use crate::fake::gitlab::api::projects::in_group;
use crate::fake::gitlab::api::view;
use crate::fake::gitlab::api::view::View;
use crate::fake::gitlab::api::view::number_of;
use crate::fake::gitlab::state::Access;
use crate::fake::gitlab::state::Item;
use crate::fake::gitlab::state::Kind;
use crate::fake::gitlab::state::Place;
use crate::fake::gitlab::state::Project;
use crate::fake::gitlab::state::State;
use crate::fake::gitlab::state::Time;
use crate::fake::request::Fields;
use crate::fake::request::Query;

/// How long a text may be.
const LONGEST_TEXT: usize = 1_048_576;

pub async fn list(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, query: Query) -> Answer {
    let items = lab.show(&viewer, |view| {
        Ok(wanted(
            view,
            vec![find(view.state, &viewer, &spot.project)?],
            spot.kind,
            &query,
        ))
    })?;
    page(&query, &lab.api(), items)
}

pub async fn issues_of_group(lab: Shared<Lab>, viewer: Viewer, group: Path<String>, query: Query) -> Answer {
    of_group(lab, &viewer, &group, Kind::Issue, &query)
}

pub async fn merge_requests_of_group(lab: Shared<Lab>, viewer: Viewer, group: Path<String>, query: Query) -> Answer {
    of_group(lab, &viewer, &group, Kind::MergeRequest, &query)
}

fn of_group(Shared(lab): Shared<Lab>, viewer: &Viewer, group: &str, kind: Kind, query: &Query) -> Answer {
    let items = lab.show(viewer, |view| {
        // Unlike the list of projects, these lists always look into the subgroups, too.
        let projects = in_group(view, group, true);
        if projects.is_empty() {
            return Err(Problem::not_found("Group"));
        }
        let archived = query.is_on("non_archived") != Some(false);
        let projects = projects
            .into_iter()
            .filter(|project| !archived || !project.is_archived)
            .collect();
        Ok(wanted(view, projects, kind, query))
    })?;
    page(query, &lab.api(), items)
}

pub async fn all_issues(lab: Shared<Lab>, viewer: Viewer, query: Query) -> Answer {
    everywhere(lab, &viewer, Kind::Issue, &query)
}

pub async fn all_merge_requests(lab: Shared<Lab>, viewer: Viewer, query: Query) -> Answer {
    everywhere(lab, &viewer, Kind::MergeRequest, &query)
}

fn everywhere(Shared(lab): Shared<Lab>, viewer: &Viewer, kind: Kind, query: &Query) -> Answer {
    let items = lab.show(viewer, |view| {
        let visible = view
            .state
            .projects
            .iter()
            .filter(|project| project.access(&viewer.0) > Access::None);
        let items = wanted(view, visible.collect(), kind, query);
        // Without a scope the list holds only what the viewer wrote.
        let is_all = query.value("scope") == Some("all");
        items
            .into_iter()
            .filter(|item| is_all || item["author"]["username"] == viewer.0.as_str())
            .collect()
    });
    page(query, &lab.api(), items)
}

fn wanted(view: View<'_>, projects: Vec<&Project>, kind: Kind, query: &Query) -> Vec<Value> {
    let items = projects
        .into_iter()
        .flat_map(|project| project.items(kind).values().map(move |item| (project, item)));
    let mut found: Vec<_> = items
        .filter(|(project, item)| project.shows_confidential(item, view.viewer))
        .filter(|(_, item)| !item.is_deleted && asked_for(item, query))
        .collect();
    match query.value("order_by") {
        Some("updated_at") => found.sort_by_key(|(_, item)| (item.updated, item.id)),
        _ => found.sort_by_key(|(_, item)| item.id),
    }
    if query.value("sort") != Some("asc") {
        found.reverse();
    }
    let with_details = query.is_on("with_labels_details") == Some(true);
    let shown = found.into_iter().map(|(project, item)| {
        let mut shown = view.item(project, item);
        if with_details {
            let labels = item.labels.iter().filter_map(|name| project.label(name));
            shown["labels"] = labels.map(|label| view::label(project, label)).collect();
        }
        shown
    });
    shown.collect()
}

fn asked_for(item: &Item, query: &Query) -> bool {
    let state = match query.value("state") {
        Some("opened") => item.is_open,
        Some("closed") => !item.is_open,
        _ => true,
    };
    let has = |wanted: &str| match wanted {
        "Any" => !item.labels.is_empty(),
        "None" => item.labels.is_empty(),
        name => item.labels.iter().any(|label| label == name),
    };
    let since = query.value("updated_after").and_then(|time| time.parse::<Time>().ok());
    let iids = query.list("iids");
    let is_from = |branch| item.merge.as_ref().is_some_and(|merge| merge.source == branch);
    let is_to = |branch| item.merge.as_ref().is_some_and(|merge| merge.target == branch);
    state
        && query.list("labels").iter().all(|wanted| has(wanted))
        && since.is_none_or(|since| item.updated >= since)
        && (iids.is_empty() || iids.contains(&item.number.to_string().as_str()))
        && query.value("author_username").is_none_or(|name| item.author == name)
        && query.value("source_branch").is_none_or(is_from)
        && query.value("target_branch").is_none_or(is_to)
}

pub async fn one(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot) -> Answer {
    ok(shown(&lab, &viewer, &spot)?)
}

pub async fn create_issue(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, fields: Fields) -> Answer {
    let project = lab.allow(&viewer, &spot.project, Access::Guest)?;
    let title = fields
        .text("title")
        .ok_or_else(|| Problem::missing("title"))?
        .to_owned();
    let description = fields.text("description").map(str::to_owned);
    check_length(description.as_deref())?;
    let draft = Draft {
        title,
        text: description,
        author: viewer.0.clone(),
    };
    let place = lab.change(|state| {
        let place = state.open(&project, draft, None);
        for label in fields.list("labels").unwrap_or_default() {
            state.add_label(&place, &label, &viewer.0);
        }
        place
    });
    created(shown(&lab, &viewer, &Spot { iid: place.iid, ..spot })?)
}

pub async fn edit(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, fields: Fields) -> Answer {
    let needed = if spot.kind == Kind::Issue {
        Access::Reporter
    } else {
        Access::Developer
    };
    let place = lab.allow_item(&viewer, &spot, needed)?;
    check_length(fields.text("description"))?;
    if fields.0.is_empty() {
        return Err(Problem::missing("title, description, labels, state_event and others"));
    }
    lab.change(|state| apply(state, &place, &viewer.0, &fields));
    ok(shown(&lab, &viewer, &spot)?)
}

fn apply(state: &mut State, place: &Place, actor: &str, fields: &Fields) {
    if let Some(title) = fields.text("title") {
        state.rename(place, actor, title);
    }
    if let Some(description) = fields.text("description") {
        state.rewrite(place, actor, Some(description));
    }
    if let Some(labels) = fields.list("labels") {
        state.set_labels(place, &labels, actor);
    }
    for label in fields.list("add_labels").unwrap_or_default() {
        state.add_label(place, &label, actor);
    }
    for label in fields.list("remove_labels").unwrap_or_default() {
        state.remove_label(place, &label, actor);
    }
    let named = |state: &State, field: &str| {
        let ids = fields.list(field)?;
        let people = state.people.iter();
        let people = people.filter(|name| ids.contains(&number_of(name).to_string()));
        Some(people.cloned().collect::<Vec<_>>())
    };
    if let Some(people) = named(state, "assignee_ids") {
        state.assign(place, actor, &people);
    }
    if let (Some(people), Some(item)) = (named(state, "reviewer_ids"), state.item_mut(place)) {
        item.merge
            .iter_mut()
            .for_each(|merge| merge.reviewers.clone_from(&people));
    }
    if let (Some(target), Some(merge)) = (
        fields.text("target_branch"),
        state.item_mut(place).and_then(|item| item.merge.as_mut()),
    ) {
        target.clone_into(&mut merge.target);
    }
    match fields.text("state_event") {
        Some("close") => state.close(place, actor),
        Some("reopen") => state.reopen(place, actor),
        _ => {}
    }
}

pub async fn delete(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot) -> Answer {
    let place = lab.allow_item(&viewer, &spot, Access::Owner)?;
    lab.change(|state| {
        if let Some(item) = state.item_mut(&place) {
            item.is_deleted = true;
        }
    });
    no_content()
}

pub fn check_length(text: Option<&str>) -> Result<(), Problem> {
    if text.is_some_and(|text| text.chars().count() > LONGEST_TEXT) {
        let why = json!({"description": ["is too long (maximum is 1048576 characters)"]});
        return Err(Problem::new(StatusCode::BAD_REQUEST, why));
    }
    Ok(())
}

pub fn shown(lab: &Lab, viewer: &Viewer, spot: &Spot) -> Result<Value, Problem> {
    lab.show(viewer, |view| {
        let (project, item) = find_item(view.state, viewer, spot)?;
        Ok(item.merge.as_ref().map_or_else(
            || view.item(project, item),
            |merge| view.whole_merge(project, item, merge),
        ))
    })
}
