//! The history of an issue, as the API tells it: `/timeline` with everything, `/events` without the
//! comments.

use axum::extract::Path;
use axum::extract::State as Shared;
use serde_json::Value;
use serde_json::json;

use crate::fake::board::Board as _;
use crate::fake::github::api::answer::Answer;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::answer::page;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::hub::Viewer;
use crate::fake::github::api::hub::find;
use crate::fake::github::api::hub::find_item;
use crate::fake::github::api::view::View;
use crate::fake::github::api::view::merge;
use crate::fake::github::api::view::node;
use crate::fake::github::api::view::text;
use crate::fake::github::state::Item;
use crate::fake::github::state::Place;
use crate::fake::github::state::Repository;
use crate::fake::history::Happening;
use crate::fake::history::What;
use crate::fake::request::Query;

type Numbered = Path<(String, String, u64)>;

pub async fn timeline(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    query: Query,
) -> Answer {
    let events = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let item = find_item(place, number)?;
        Ok(item
            .history
            .iter()
            .filter_map(|happening| in_timeline(view, place, item, happening))
            .collect())
    })?;
    page(&query, &hub.api(), events)
}

pub async fn events(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    query: Query,
) -> Answer {
    let asked = Place::new(&format!("{owner}/{name}"), number);
    let mut events: Vec<Value> = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let item = find_item(place, number)?;
        let events = item.history.iter();
        let events = events.filter_map(|happening| event(view, place, happening));
        Ok::<_, Problem>(events.collect())
    })?;
    if hub.change(|state| state.is_late(&asked)) {
        events.pop();
    }
    page(&query, &hub.api(), events)
}

fn in_timeline(view: View<'_>, place: &Repository, item: &Item, happening: &Happening<Place>) -> Option<Value> {
    let shown = match &happening.what {
        What::Commented(id) => {
            let comment = item.comments.iter().find(|comment| comment.id == *id)?;
            let mut shown = view.comment(place, item, comment);
            merge(
                &mut shown,
                json!({"event": "commented", "actor": view.user(&comment.author)}),
            );
            shown
        }
        What::Mentioned(by) => {
            let source = view.state.repository(&by.repository)?;
            json!({
                "event": "cross-referenced", "actor": view.user(&happening.actor), "created_at": text(happening.when),
                "updated_at": text(happening.when),
                "source": {"type": "issue", "issue": view.issue(source, source.items.get(&by.number)?)},
            })
        }
        What::Reviewed(id) => {
            let review = item.pull.as_ref()?.reviews.iter().find(|review| review.id == *id)?;
            let mut shown = view.review(place, item, review);
            merge(
                &mut shown,
                json!({"event": "reviewed", "state": review.state.name().to_lowercase()}),
            );
            shown
        }
        _ => event(view, place, happening)?,
    };
    Some(shown)
}

fn event(view: View<'_>, place: &Repository, happening: &Happening<Place>) -> Option<Value> {
    let label =
        |name: &String| json!({"name": name, "color": place.label(name).map_or("ededed", |label| &label.color)});
    let person = |login: &String| json!({"assignee": view.user(login), "assigner": view.user(&happening.actor)});
    let (kind, more) = match &happening.what {
        What::Labeled(name) => ("labeled", json!({"label": label(name)})),
        What::Unlabeled(name) => ("unlabeled", json!({"label": label(name)})),
        What::Assigned(login) => ("assigned", person(login)),
        What::Unassigned(login) => ("unassigned", person(login)),
        What::Renamed { from, to } => ("renamed", json!({"rename": {"from": from, "to": to}})),
        What::Closed => ("closed", json!({"state_reason": null})),
        What::Reopened => ("reopened", json!({"state_reason": null})),
        What::Locked => ("locked", json!({"lock_reason": null})),
        What::Merged => ("merged", json!({})),
        What::BranchDeleted => ("head_ref_deleted", json!({})),
        What::BaseChanged => ("base_ref_changed", json!({})),
        What::MadeDraft => ("convert_to_draft", json!({})),
        What::MadeReady => ("ready_for_review", json!({})),
        What::Pushed { is_forced: true, .. } => ("head_ref_force_pushed", json!({})),
        What::Opened
        | What::Commented(_)
        | What::CommentEdited(_)
        | What::CommentDeleted
        | What::Reacted { .. }
        | What::TextEdited
        | What::Deleted
        | What::Mentioned { .. }
        | What::Pushed { is_forced: false, .. }
        | What::Reviewed(_)
        | What::LineCommented(_) => return None,
    };
    let mut shown = json!({
        "id": happening.id, "node_id": node("EV", happening.id), "event": kind, "actor": view.user(&happening.actor),
        "url": format!("{}/repos/{}/issues/events/{}", view.api, place.full_name(), happening.id),
        "commit_id": null, "commit_url": null, "created_at": text(happening.when), "performed_via_github_app": null,
    });
    merge(&mut shown, more);
    Some(shown)
}
