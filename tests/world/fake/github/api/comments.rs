//! Comments on issues and pull requests; and what can be done with comments of every kind: editing,
//! deleting, reacting.

use axum::extract::Path;
use axum::extract::State as Shared;
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
use crate::fake::github::api::issues::check_length;
use crate::fake::github::api::view::View;
use crate::fake::github::api::view::is_reaction;
use crate::fake::github::state::Comment;
use crate::fake::github::state::Item;
use crate::fake::github::state::Permission;
use crate::fake::github::state::Place;
use crate::fake::github::state::Repository;
use crate::fake::github::state::Time;
use crate::fake::request::Fields;
use crate::fake::request::Query;

type Numbered = Path<(String, String, u64)>;
/// A comment, and what it stands below.
pub type Written<'a> = (&'a Item, &'a Comment);

/// A kind of comment: each has its own numbers, and its own form in the answers.
pub trait Kind: 'static {
    const RESOURCE: &'static str;

    fn find(place: &Repository, id: u64) -> Result<Written<'_>, Problem>;

    fn shown(view: &View<'_>, place: &Repository, id: u64) -> Result<Value, Problem>;
}

/// The comments below an issue or a pull request.
pub struct Below;

impl Kind for Below {
    const RESOURCE: &'static str = "IssueComment";

    fn find(place: &Repository, id: u64) -> Result<Written<'_>, Problem> {
        let items = place.items.values().filter(|item| !item.is_deleted);
        let mut comments = items.flat_map(|item| item.comments.iter().map(move |comment| (item, comment)));
        comments
            .find(|(_, comment)| comment.id == id)
            .ok_or_else(Problem::not_found)
    }

    fn shown(view: &View<'_>, place: &Repository, id: u64) -> Result<Value, Problem> {
        let (item, comment) = Self::find(place, id)?;
        Ok(view.comment(place, item, comment))
    }
}

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

pub async fn one<K: Kind>(Shared(hub): Shared<Hub>, viewer: Viewer, Path((owner, name, id)): Numbered) -> Answer {
    ok(shown::<K>(&hub, &viewer, &(owner, name), id)?)
}

pub async fn create(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, number)): Numbered,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let item = hub.allow_item(&viewer, &place, number, Permission::Read)?;
    hub.read(|state| {
        let place = find(state, &viewer, &place)?;
        let is_locked = find_item(place, number)?.is_locked;
        if is_locked && place.permission(&viewer.login) < Permission::Write {
            return Err(Problem::forbidden("Unable to create comment because issue is locked."));
        }
        Ok(())
    })?;
    let body = body::<Below>(&fields)?;
    let id = hub.change(|state| state.comment(&item, &viewer.login, body));
    created(shown::<Below>(&hub, &viewer, &place, id)?)
}

pub async fn edit<K: Kind>(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, id)): Numbered,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let item = own::<K>(&hub, &viewer, &place, id)?;
    let body = body::<K>(&fields)?;
    hub.change(|state| state.edit_comment(&item, id, &viewer.login, body));
    ok(shown::<K>(&hub, &viewer, &place, id)?)
}

pub async fn delete<K: Kind>(Shared(hub): Shared<Hub>, viewer: Viewer, Path((owner, name, id)): Numbered) -> Answer {
    let item = own::<K>(&hub, &viewer, &(owner, name), id)?;
    hub.change(|state| state.delete_comment(&item, id, &viewer.login));
    no_content()
}

pub async fn reactions<K: Kind>(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, id)): Numbered,
    query: Query,
) -> Answer {
    let place = (owner, name);
    let reactions = hub.show(&viewer, |view| {
        let (_, comment) = K::find(find(view.state, &viewer, &place)?, id)?;
        let wanted = comment
            .reactions
            .iter()
            .filter(|given| query.value("content").is_none_or(|c| given.content == c));
        Ok(wanted.map(|reaction| view.reaction(reaction)).collect())
    })?;
    page(&query, &hub.api(), reactions)
}

/// Answers 201 for a new reaction, 200 for one that is there already.
pub async fn react<K: Kind>(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, id)): Numbered,
    fields: Fields,
) -> Answer {
    let place = (owner, name);
    let repository = hub.allow(&viewer, &place, Permission::Read)?;
    let number = hub.read(|state| Ok::<_, Problem>(K::find(find(state, &viewer, &place)?, id)?.0.number))?;
    let content = fields.text("content").filter(|content| is_reaction(content));
    let content = content.ok_or_else(|| Problem::invalid("Reaction", "content", "invalid"))?;
    let reaction = hub.change(|state| state.react(&Place::new(&repository, number), id, &viewer.login, content));
    let (reaction, is_new) = reaction.ok_or_else(Problem::not_found)?;
    let shown = hub.show(&viewer, |view| view.reaction(&reaction));
    if is_new { created(shown) } else { ok(shown) }
}

pub fn body<K: Kind>(fields: &Fields) -> Result<&str, Problem> {
    let body = fields.text("body").filter(|body| !body.trim().is_empty());
    let body = body.ok_or_else(|| Problem::invalid(K::RESOURCE, "body", "missing_field"))?;
    check_length(Some(body))?;
    Ok(body)
}

/// Finds the item of a comment that the viewer may change.
fn own<K: Kind>(hub: &Hub, viewer: &Viewer, place: &(String, String), id: u64) -> Result<Place, Problem> {
    let repository = hub.allow(viewer, place, Permission::Read)?;
    hub.read(|state| {
        let place = find(state, viewer, place)?;
        let (item, comment) = K::find(place, id)?;
        if comment.author != viewer.login && place.permission(&viewer.login) < Permission::Write {
            return Err(Problem::forbidden("Must have admin rights to Repository."));
        }
        Ok(Place::new(&repository, item.number))
    })
}

fn shown<K: Kind>(hub: &Hub, viewer: &Viewer, place: &(String, String), id: u64) -> Result<Value, Problem> {
    hub.show(viewer, |view| K::shown(&view, find(view.state, viewer, place)?, id))
}
