//! Notes on issues and merge requests, the discussions they form, and emoji on them.

use axum::Json;
use axum::extract::Path;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::Value;
use serde_json::json;

use crate::fake::board::Board as _;
use crate::fake::gitlab::api::answer::Answer;
use crate::fake::gitlab::api::answer::Problem;
use crate::fake::gitlab::api::answer::created;
use crate::fake::gitlab::api::answer::no_content;
use crate::fake::gitlab::api::answer::ok;
use crate::fake::gitlab::api::answer::page;
use crate::fake::gitlab::api::items::check_length;
use crate::fake::gitlab::api::lab::Lab;
use crate::fake::gitlab::api::lab::Spot;
use crate::fake::gitlab::api::lab::Viewer;
use crate::fake::gitlab::api::lab::find_item;
use crate::fake::gitlab::api::view::View;
use crate::fake::gitlab::state::Access;
use crate::fake::gitlab::state::Item;
use crate::fake::gitlab::state::Note;
use crate::fake::gitlab::state::Place;
use crate::fake::gitlab::state::Project;
use crate::fake::request::Fields;
use crate::fake::request::Query;

type Numbered = Path<(String, u64, u64)>;
type Named = Path<(String, u64, String)>;

pub async fn list(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, query: Query) -> Answer {
    let notes = lab.show(&viewer, |view| {
        let (project, item) = find_item(view.state, &viewer, &spot)?;
        let is_shown = |note: &&Note| !note.is_internal || project.access(&viewer.0) >= Access::Planner;
        let notes = item.notes.iter().filter(is_shown);
        let mut notes: Vec<_> = notes.map(|note| view.note(project, item, note)).collect();
        // The newest comes first, unless asked otherwise.
        if query.value("sort") != Some("asc") {
            notes.reverse();
        }
        Ok(notes)
    })?;
    page(&query, &lab.api(), notes)
}

pub async fn one(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, Path((.., id)): Numbered) -> Answer {
    ok(shown(&lab, &viewer, &spot, id)?)
}

pub async fn create(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, fields: Fields) -> Answer {
    write(&lab, &viewer, &spot, &fields, None)
}

pub async fn reply(
    Shared(lab): Shared<Lab>,
    viewer: Viewer,
    spot: Spot,
    Path((.., discussion)): Named,
    fields: Fields,
) -> Answer {
    lab.show(&viewer, |view| {
        let (project, item) = find_item(view.state, &viewer, &spot)?;
        shown_discussion(view, project, item, &discussion)
            .map(|_| ())
            .ok_or_else(|| Problem::not_found("Discussion"))
    })?;
    write(&lab, &viewer, &spot, &fields, Some(&discussion))
}

fn write(lab: &Lab, viewer: &Viewer, spot: &Spot, fields: &Fields, discussion: Option<&str>) -> Answer {
    let place = lab.allow_item(viewer, spot, Access::Guest)?;
    let body = fields.text("body").ok_or_else(|| Problem::missing("body"))?;
    check_length(Some(body))?;
    let (is_locked, access) = lab.read(|state| {
        let locked = state.item(&place).is_some_and(|item| item.is_locked);
        (
            locked,
            state
                .project(&place.project)
                .map_or(Access::None, |project| project.access(&viewer.0)),
        )
    });
    if is_locked && access < Access::Reporter {
        return Err(Problem::forbidden());
    }
    let (commands, body) = quick_actions(body);
    let note = lab.change(|state| {
        for command in &commands {
            match *command {
                "/close" => state.close(&place, &viewer.0),
                _ => state.reopen(&place, &viewer.0),
            }
        }
        (!body.trim().is_empty()).then(|| state.note(&place, &viewer.0, &body, discussion))
    });
    match note {
        Some(id) => created(shown(lab, viewer, spot, id)?),
        None if commands.is_empty() => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            json!({"note": ["can't be blank"]}),
        )),
        None => {
            let done = json!({"commands_changes": {}, "summary": ["Applied the commands."]});
            Ok((StatusCode::ACCEPTED, Json(done)).into_response())
        }
    }
}

/// Takes the commands out that GitLab itself obeys: a line of a note may close the issue.
fn quick_actions(body: &str) -> (Vec<&'static str>, String) {
    let command = |line: &str| {
        ["/close", "/reopen"]
            .into_iter()
            .find(|command| line.trim() == *command)
    };
    let commands: Vec<_> = body.lines().filter_map(command).collect();
    if commands.is_empty() {
        return (commands, body.to_owned());
    }
    let rest: Vec<_> = body.lines().filter(|line| command(line).is_none()).collect();
    (commands, rest.join("\n"))
}

pub async fn edit(
    Shared(lab): Shared<Lab>,
    viewer: Viewer,
    spot: Spot,
    Path((.., id)): Numbered,
    fields: Fields,
) -> Answer {
    let place = own(&lab, &viewer, &spot, id)?;
    let body = fields.text("body").ok_or_else(|| Problem::missing("body"))?;
    check_length(Some(body))?;
    lab.change(|state| state.edit_comment(&place, id, &viewer.0, body));
    ok(shown(&lab, &viewer, &spot, id)?)
}

pub async fn delete(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, Path((.., id)): Numbered) -> Answer {
    let place = own(&lab, &viewer, &spot, id)?;
    lab.change(|state| state.delete_comment(&place, id, &viewer.0));
    no_content()
}

/// Finds the place of a note that the viewer may change: an own one, or any for a maintainer.
fn own(lab: &Lab, viewer: &Viewer, spot: &Spot, id: u64) -> Result<Place, Problem> {
    let place = lab.allow_item(viewer, spot, Access::Guest)?;
    lab.read(|state| {
        let (project, item) = find_item(state, viewer, spot)?;
        let note = item.note(id).ok_or_else(|| Problem::not_found("Note"))?;
        if note.is_system || (note.author != viewer.0 && project.access(&viewer.0) < Access::Maintainer) {
            return Err(Problem::forbidden());
        }
        Ok(place)
    })
}

pub async fn awards(
    Shared(lab): Shared<Lab>,
    viewer: Viewer,
    spot: Spot,
    Path((.., id)): Numbered,
    query: Query,
) -> Answer {
    let awards = lab.show(&viewer, |view| {
        let (_, item) = find_item(view.state, &viewer, &spot)?;
        let note = item.note(id).ok_or_else(|| Problem::not_found(""))?;
        Ok(note.awards.iter().map(|award| view.award(item, id, award)).collect())
    })?;
    page(&query, &lab.api(), awards)
}

pub async fn award(
    Shared(lab): Shared<Lab>,
    viewer: Viewer,
    spot: Spot,
    Path((.., id)): Numbered,
    fields: Fields,
) -> Answer {
    let place = lab.allow_item(&viewer, &spot, Access::Guest)?;
    shown(&lab, &viewer, &spot, id)?;
    let name = fields.text("name").ok_or_else(|| Problem::missing("name"))?;
    let award = lab.change(|state| state.award(&place, id, &viewer.0, name));
    let taken = || {
        Problem::new(
            StatusCode::NOT_FOUND,
            json!("404 Award Emoji Name has already been taken Not Found"),
        )
    };
    let award = award.ok_or_else(taken)?;
    created(lab.show(&viewer, |view| {
        let (_, item) = find_item(view.state, &viewer, &spot)?;
        Ok::<_, Problem>(view.award(item, id, &award))
    })?)
}

pub async fn discussions(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, query: Query) -> Answer {
    let discussions = lab.show(&viewer, |view| {
        let (project, item) = find_item(view.state, &viewer, &spot)?;
        let mut names: Vec<&str> = Vec::new();
        for note in &item.notes {
            if !names.contains(&note.discussion.as_str()) {
                names.push(&note.discussion);
            }
        }
        Ok(names
            .into_iter()
            .filter_map(|name| shown_discussion(view, project, item, name))
            .collect())
    })?;
    page(&query, &lab.api(), discussions)
}

pub async fn discussion(Shared(lab): Shared<Lab>, viewer: Viewer, spot: Spot, Path((.., name)): Named) -> Answer {
    ok(lab.show(&viewer, |view| {
        let (project, item) = find_item(view.state, &viewer, &spot)?;
        shown_discussion(view, project, item, &name).ok_or_else(|| Problem::not_found("Discussion"))
    })?)
}

fn shown_discussion(view: View<'_>, project: &Project, item: &Item, name: &str) -> Option<Value> {
    let notes: Vec<_> = item.notes.iter().filter(|note| note.discussion == name).collect();
    let is_alone = notes.len() == 1 && notes.iter().all(|note| note.position.is_none());
    let shown: Vec<_> = notes.iter().map(|note| view.note(project, item, note)).collect();
    (!notes.is_empty()).then(|| json!({"id": name, "individual_note": is_alone, "notes": shown}))
}

fn shown(lab: &Lab, viewer: &Viewer, spot: &Spot, id: u64) -> Result<Value, Problem> {
    lab.show(viewer, |view| {
        let (project, item) = find_item(view.state, viewer, spot)?;
        let note = item.note(id).ok_or_else(|| Problem::not_found("Note"))?;
        Ok(view.note(project, item, note))
    })
}
