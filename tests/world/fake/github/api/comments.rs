//! Comments on issues and pull requests, and reactions to them.

use axum::extract::Path;
use axum::extract::State as Shared;
use serde_json::Value;

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
use crate::fake::github::api::issues::check_length;
use crate::fake::github::api::view::is_reaction;
use crate::fake::github::state::Comment;
use crate::fake::github::state::Item;
use crate::fake::github::state::Permission;
use crate::fake::github::state::Repository;
use crate::fake::github::state::Time;
use crate::fake::request::Fields;
use crate::fake::request::Query;

type Numbered = Path<(String, String, u64)>;
/// A comment, and what it stands below.
pub type Written<'a> = (&'a Item, &'a Comment);
/// Finds a comment of one kind: each kind has its own numbers.
type Seek = for<'a> fn(&'a Repository, u64) -> Result<Written<'a>, Problem>;

pub async fn list(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    query: Query,
) -> Answer {
    let since = query.value("since").and_then(|time| time.parse::<Time>().ok());
    let comments = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        let item = find_item(place, number)?;
        let recent = item
            .comments
            .iter()
            .filter(|comment| since.is_none_or(|since| comment.updated >= since));
        Ok(recent.map(|comment| view.comment(place, item, comment)).collect())
    })?;
    page(&query, &hub.api(), comments)
}

pub async fn one(Shared(hub): Shared<Hub>, viewer: Viewer, Path((owner, name, id)): Numbered) -> Answer {
    ok(shown(&hub, &viewer, &(owner, name), id)?)
}

pub async fn create(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let repository = hub.allow(&viewer, &place, Permission::Read)?;
    hub.read(|state| {
        let place = find(state, &viewer, &place)?;
        let is_locked = find_item(place, number)?.is_locked;
        if is_locked && place.permission(&viewer.login) < Permission::Write {
            return Err(Problem::forbidden("Unable to create comment because issue is locked."));
        }
        Ok(())
    })?;
    let body = body(&fields, "IssueComment")?;
    let id = hub.change(|state| state.comment(&repository, number, &viewer.login, body));
    created(shown(&hub, &viewer, &place, id)?)
}

pub async fn edit(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, id)): Numbered,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let (repository, number) = own(&hub, &viewer, &place, id, find_comment)?;
    let body = body(&fields, "IssueComment")?;
    hub.change(|state| state.edit_comment(&repository, number, id, &viewer.login, body));
    ok(shown(&hub, &viewer, &place, id)?)
}

pub async fn delete(Shared(hub): Shared<Hub>, viewer: Viewer, Path((owner, name, id)): Numbered) -> Answer {
    let (repository, number) = own(&hub, &viewer, &(owner, name), id, find_comment)?;
    hub.change(|state| state.delete_comment(&repository, number, id, &viewer.login));
    no_content()
}

pub async fn reactions(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, id)): Numbered,
    query: Query,
) -> Answer {
    given(&hub, &viewer, &(owner, name), (id, find_comment), &query)
}

pub async fn react(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, id)): Numbered,
    fields: Fields,
) -> Answer {
    put_reaction(&hub, &viewer, &(owner, name), (id, find_comment), &fields)
}

/// Answers with the reactions to a comment of either kind.
pub fn given(hub: &Hub, viewer: &Viewer, place: &(String, String), (id, seek): (u64, Seek), query: &Query) -> Answer {
    let reactions = hub.show(viewer, |view| {
        let (_, comment) = seek(find(view.state, viewer, place)?, id)?;
        let wanted = comment
            .reactions
            .iter()
            .filter(|given| query.value("content").is_none_or(|c| given.content == c));
        Ok(wanted.map(|reaction| view.reaction(reaction)).collect())
    })?;
    page(query, &hub.api(), reactions)
}

/// Reacts to a comment of either kind: 201 for a new reaction, 200 for one that is there already.
pub fn put_reaction(
    hub: &Hub,
    viewer: &Viewer,
    place: &(String, String),
    (id, seek): (u64, Seek),
    fields: &Fields,
) -> Answer {
    let repository = hub.allow(viewer, place, Permission::Read)?;
    let number = hub.read(|state| Ok::<_, Problem>(seek(find(state, viewer, place)?, id)?.0.number))?;
    let content = fields.text("content").filter(|content| is_reaction(content));
    let content = content.ok_or_else(|| Problem::invalid("Reaction", "content", "invalid"))?;
    let reaction = hub.change(|state| state.react((&repository, number, id), &viewer.login, content));
    let (reaction, is_new) = reaction.ok_or_else(Problem::not_found)?;
    let shown = hub.show(viewer, |view| view.reaction(&reaction));
    if is_new { created(shown) } else { ok(shown) }
}

pub fn body<'a>(fields: &'a Fields, resource: &str) -> Result<&'a str, Problem> {
    let body = fields.text("body").filter(|body| !body.trim().is_empty());
    let body = body.ok_or_else(|| Problem::invalid(resource, "body", "missing_field"))?;
    check_length(Some(body))?;
    Ok(body)
}

/// Finds the repository and number of a comment that the viewer may change.
pub fn own(
    hub: &Hub,
    viewer: &Viewer,
    place: &(String, String),
    id: u64,
    seek: Seek,
) -> Result<(String, u64), Problem> {
    let repository = hub.allow(viewer, place, Permission::Read)?;
    hub.read(|state| {
        let place = find(state, viewer, place)?;
        let (item, comment) = seek(place, id)?;
        if comment.author != viewer.login && place.permission(&viewer.login) < Permission::Write {
            return Err(Problem::forbidden("Must have admin rights to Repository."));
        }
        Ok((repository, item.number))
    })
}

fn find_comment(place: &Repository, id: u64) -> Result<Written<'_>, Problem> {
    let items = place.items.values().filter(|item| !item.is_deleted);
    let mut comments = items.flat_map(|item| item.comments.iter().map(move |comment| (item, comment)));
    comments
        .find(|(_, comment)| comment.id == id)
        .ok_or_else(Problem::not_found)
}

fn shown(hub: &Hub, viewer: &Viewer, place: &(String, String), id: u64) -> Result<Value, Problem> {
    hub.show(viewer, |view| {
        let place = find(view.state, viewer, place)?;
        let (item, comment) = find_comment(place, id)?;
        Ok(view.comment(place, item, comment))
    })
}
