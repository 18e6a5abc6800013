//! Remarks on lines of pull requests, and reactions to them.

use axum::extract::Path;
use axum::extract::State as Shared;
use serde_json::Value;

use crate::fake::github::api::answer::Answer;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::answer::no_content;
use crate::fake::github::api::answer::ok;
use crate::fake::github::api::answer::page;
use crate::fake::github::api::comments::Written;
use crate::fake::github::api::comments::body;
use crate::fake::github::api::comments::given;
use crate::fake::github::api::comments::own;
use crate::fake::github::api::comments::put_reaction;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::hub::Viewer;
use crate::fake::github::api::hub::find;
use crate::fake::github::api::hub::find_pull;
use crate::fake::github::state::Item;
use crate::fake::github::state::LineComment;
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

pub async fn one(Shared(hub): Shared<Hub>, viewer: Viewer, Path((owner, name, id)): Numbered) -> Answer {
    ok(shown(&hub, &viewer, &(owner, name), id)?)
}

pub async fn edit(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, id)): Numbered,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let (repository, number) = own(&hub, &viewer, &place, id, find_written)?;
    let body = body(&fields, "PullRequestReviewComment")?;
    hub.change(|state| state.edit_comment(&repository, number, id, &viewer.login, body));
    ok(shown(&hub, &viewer, &place, id)?)
}

pub async fn delete(Shared(hub): Shared<Hub>, viewer: Viewer, Path((owner, name, id)): Numbered) -> Answer {
    let (repository, number) = own(&hub, &viewer, &(owner, name), id, find_written)?;
    hub.change(|state| state.delete_comment(&repository, number, id, &viewer.login));
    no_content()
}

pub async fn reactions(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, id)): Numbered,
    query: Query,
) -> Answer {
    given(&hub, &viewer, &(owner, name), (id, find_written), &query)
}

pub async fn react(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, id)): Numbered,
    fields: Fields,
) -> Answer {
    put_reaction(&hub, &viewer, &(owner, name), (id, find_written), &fields)
}

fn find_written(place: &Repository, id: u64) -> Result<Written<'_>, Problem> {
    let (item, written) = find_remark(place, id)?;
    Ok((item, &written.comment))
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

fn shown(hub: &Hub, viewer: &Viewer, place: &(String, String), id: u64) -> Result<Value, Problem> {
    hub.show(viewer, |view| {
        let place = find(view.state, viewer, place)?;
        let (item, written) = find_remark(place, id)?;
        Ok(view.line_comment(place, item, written))
    })
}
