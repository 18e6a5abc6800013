//! Remarks on lines of pull requests.

use axum::extract::Path;
use axum::extract::State as Shared;
use serde_json::Value;

use crate::fake::github::api::answer::Answer;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::answer::created;
use crate::fake::github::api::answer::page;
use crate::fake::github::api::comments::Kind;
use crate::fake::github::api::comments::Written;
use crate::fake::github::api::comments::body;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::hub::Viewer;
use crate::fake::github::api::hub::find;
use crate::fake::github::api::hub::find_pull;
use crate::fake::github::api::view::View;
use crate::fake::github::state::Item;
use crate::fake::github::state::LineComment;
use crate::fake::github::state::Permission;
use crate::fake::github::state::Repository;
use crate::fake::request::Fields;
use crate::fake::request::Query;

type Numbered = Path<(String, String, u64)>;

pub async fn list(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    query: Query,
) -> Answer {
    page(
        &query,
        &hub.api(),
        written(&hub, &viewer, &(owner, name), number, None)?,
    )
}

pub async fn of_review(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number, review)): Path<(String, String, u64, u64)>,
    query: Query,
) -> Answer {
    page(
        &query,
        &hub.api(),
        written(&hub, &viewer, &(owner, name), number, Some(review))?,
    )
}

/// Replies to a remark that began its thread; a reply takes no replies of its own.
pub async fn reply(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number, id)): Path<(String, String, u64, u64)>,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let item = hub.allow_item(&viewer, &place, number, Permission::Read)?;
    let first = hub.read(|state| {
        let (found, written) = find_remark(find(state, &viewer, &place)?, id)?;
        let is_here = found.number == number && written.in_reply_to.is_none();
        is_here.then(|| written.clone()).ok_or_else(Problem::not_found)
    })?;
    let body = body::<OnLines>(&fields)?;
    let id = hub.change(|state| state.reply(&item, &first, &viewer.login, body));
    created(hub.show(&viewer, |view| {
        OnLines::shown(&view, find(view.state, &viewer, &place)?, id)
    })?)
}

fn written(
    hub: &Hub,
    viewer: &Viewer,
    place: &(String, String),
    number: u64,
    review: Option<u64>,
) -> Result<Vec<Value>, Problem> {
    hub.show(viewer, |view| {
        let place: &Repository = find(view.state, viewer, place)?;
        let (item, pull) = find_pull(place, number)?;
        let wanted = pull
            .line_comments
            .iter()
            .filter(|comment| review.is_none_or(|review| comment.review == review));
        Ok(wanted.map(|comment| view.line_comment(place, item, comment)).collect())
    })
}

/// The comments on lines of a pull request.
pub struct OnLines;

impl Kind for OnLines {
    const RESOURCE: &'static str = "PullRequestReviewComment";

    fn find(place: &Repository, id: u64) -> Result<Written<'_>, Problem> {
        let (item, written) = find_remark(place, id)?;
        Ok((item, &written.comment))
    }

    fn shown(view: &View<'_>, place: &Repository, id: u64) -> Result<Value, Problem> {
        let (item, written) = find_remark(place, id)?;
        Ok(view.line_comment(place, item, written))
    }
}

fn find_remark(place: &Repository, id: u64) -> Result<(&Item, &LineComment), Problem> {
    let pulls = place.items.values().filter(|item| !item.is_deleted);
    let mut remarks = pulls.flat_map(|item| {
        let remarks = item.pull.iter().flat_map(|pull| &pull.line_comments);
        remarks.map(move |written| (item, written))
    });
    remarks
        .find(|(_, written)| written.comment.id == id)
        .ok_or_else(Problem::not_found)
}
