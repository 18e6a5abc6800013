//! Users, groups, projects, members and branches.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::Path;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::http::StatusCode;
use axum::response::IntoResponse as _;
use serde_json::Value;
use serde_json::json;

use crate::fake::forge::Host as _;
use crate::fake::gitlab::api::answer::Answer;
use crate::fake::gitlab::api::answer::Problem;
use crate::fake::gitlab::api::answer::created;
use crate::fake::gitlab::api::answer::ok;
use crate::fake::gitlab::api::answer::page;
use crate::fake::gitlab::api::lab::Lab;
use crate::fake::gitlab::api::lab::Viewer;
use crate::fake::gitlab::api::lab::find;
use crate::fake::gitlab::api::view::View;
use crate::fake::gitlab::api::view::add;
use crate::fake::gitlab::api::view::number_of;
use crate::fake::gitlab::state::Access;
use crate::fake::gitlab::state::Project;
use crate::fake::request::Fields;
use crate::fake::request::Query;

pub async fn viewer(Shared(lab): Shared<Lab>, viewer: Viewer) -> Answer {
    ok(lab.show(&viewer, |view| {
        let is_admin = view.state.administrators.contains(&viewer.0);
        let mut user = view.user(&viewer.0);
        add(&mut user, json!({"created_at": "2020-01-01T00:00:00.000Z", "bot": false, "email": "bot@example.org", "is_admin": is_admin}));
        user
    }))
}

pub async fn version() -> Answer {
    ok(json!({"version": "18.5.0", "revision": "fake", "enterprise": false, "kas": {"enabled": false}}))
}

pub async fn token(Shared(lab): Shared<Lab>, viewer: Viewer) -> Answer {
    let (scopes, end, is_active) = lab.read(|state| {
        let token = state.tokens.values().find(|token| token.username == viewer.0);
        let scopes = token.map(|token| token.scopes.clone());
        (scopes, state.tokens_end, !state.has_inactive_tokens)
    });
    ok(json!({
        "id": 1, "name": "coding-agent", "revoked": false, "active": is_active, "scopes": scopes,
        "user_id": number_of(&viewer.0),
        "created_at": "2020-01-01T00:00:00.000Z", "last_used_at": null, "expires_at": end,
    }))
}

pub async fn users(Shared(lab): Shared<Lab>, viewer: Viewer, query: Query) -> Answer {
    let found = lab.show(&viewer, |view| {
        let people = view.state.people.iter().filter(|name| {
            query
                .value("username")
                .is_none_or(|wanted| name.eq_ignore_ascii_case(wanted))
        });
        people.map(|name| view.user(name)).collect()
    });
    page(&query, &lab.api(), found)
}

pub async fn user_by_id(Shared(lab): Shared<Lab>, viewer: Viewer, Path(id): Path<u64>) -> Answer {
    let name = lab.read(|state| state.people.iter().find(|name| state.id_of(name) == id).cloned());
    let name = name.ok_or_else(|| Problem::not_found("User"))?;
    ok(lab.show(&viewer, |view| view.user(&name)))
}

pub async fn group(Shared(lab): Shared<Lab>, viewer: Viewer, Path(group): Path<String>) -> Answer {
    ok(lab.show(&viewer, |view| {
        let inside = in_group(view, &group, true);
        let path = inside
            .first()
            .map(|project| group_path(project, &group))
            .ok_or_else(|| Problem::not_found("Group"))?;
        Ok(json!({
            "id": number_of(&path), "name": path, "path": path.rsplit('/').next(), "full_path": path, "full_name": path,
            "description": "", "visibility": "private", "parent_id": null,
            "web_url": format!("{}/groups/{path}", view.web),
        }))
    })?)
}

pub async fn of_group(Shared(lab): Shared<Lab>, viewer: Viewer, Path(group): Path<String>, query: Query) -> Answer {
    let with_subgroups = query.is_on("include_subgroups") == Some(true);
    let found = lab.show(&viewer, |view| {
        if in_group(view, &group, true).is_empty() {
            return Err(Problem::not_found("Group"));
        }
        let archived = query.is_on("archived");
        let found = in_group(view, &group, with_subgroups).into_iter();
        let wanted = found.filter(|project| archived.is_none_or(|archived| project.is_archived == archived));
        let least: u8 = query
            .value("min_access_level")
            .map_or(0, |level| level.parse().expect("a level"));
        let wanted = wanted
            .filter(|project| least == 0 || project.members.get(view.viewer).is_some_and(|own| *own as u8 >= least));
        Ok(wanted.map(|project| view.project(project)).collect())
    })?;
    page(&query, &lab.api(), found)
}

/// Returns the projects of a group that the viewer may see. A group is named by its path or its
/// number.
pub fn in_group<'a>(view: View<'a>, group: &str, with_subgroups: bool) -> Vec<&'a Project> {
    let visible = view
        .state
        .projects
        .iter()
        .filter(|project| project.access(view.viewer) > Access::None);
    let inside = visible.filter(|project| {
        let own = project.group();
        let is_own = own == group || number_of(own).to_string() == group;
        is_own || (with_subgroups && group_path(project, group) != own)
    });
    inside.collect()
}

/// Returns the path of the group of a project, or of the one above it that was named.
fn group_path(project: &Project, group: &str) -> String {
    let mut above = project.group();
    loop {
        if above == group || number_of(above).to_string() == group {
            return above.to_owned();
        }
        let Some((parent, _)) = above.rsplit_once('/') else {
            return project.group().to_owned();
        };
        above = parent;
    }
}

pub async fn list(Shared(lab): Shared<Lab>, viewer: Viewer, query: Query) -> Answer {
    let found = lab.show(&viewer, |view| {
        let visible = view
            .state
            .projects
            .iter()
            .filter(|project| project.access(&viewer.0) > Access::None);
        let only_mine = query.is_on("membership") == Some(true);
        let wanted = visible.filter(|project| !only_mine || project.members.contains_key(&viewer.0));
        wanted.map(|project| view.project(project)).collect()
    });
    page(&query, &lab.api(), found)
}

pub async fn one(Shared(lab): Shared<Lab>, viewer: Viewer, Path(project): Path<String>) -> Answer {
    ok(lab.show(&viewer, |view| Ok(view.project(find(view.state, &viewer, &project)?)))?)
}

pub async fn members(Shared(lab): Shared<Lab>, viewer: Viewer, Path(project): Path<String>, query: Query) -> Answer {
    let found = lab.show(&viewer, |view| {
        let project = find(view.state, &viewer, &project)?;
        Ok(shown_members(view, &project.members, &query))
    })?;
    page(&query, &lab.api(), found)
}

pub async fn all_members(
    Shared(lab): Shared<Lab>,
    viewer: Viewer,
    Path(project): Path<String>,
    query: Query,
) -> Answer {
    let found = lab.show(&viewer, |view| {
        let project = find(view.state, &viewer, &project)?;
        Ok(shown_members(view, &project.all_members(), &query))
    })?;
    page(&query, &lab.api(), found)
}

pub async fn member(Shared(lab): Shared<Lab>, viewer: Viewer, Path((project, user)): Path<(String, String)>) -> Answer {
    ok(lab.show(&viewer, |view| {
        let project = find(view.state, &viewer, &project)?;
        member_with_id(view, &project.members, &user)
    })?)
}

pub async fn any_member(
    Shared(lab): Shared<Lab>,
    viewer: Viewer,
    Path((project, user)): Path<(String, String)>,
) -> Answer {
    ok(lab.show(&viewer, |view| {
        let project = find(view.state, &viewer, &project)?;
        member_with_id(view, &project.all_members(), &user)
    })?)
}

/// Finds members as GitLab does: by any part of their names.
fn shown_members(view: View<'_>, members: &BTreeMap<String, Access>, query: &Query) -> Vec<Value> {
    let wanted = query.value("query").unwrap_or_default().to_lowercase();
    let found = members.iter().filter(|(name, _)| name.to_lowercase().contains(&wanted));
    found.map(|(name, access)| shown_member(view, name, *access)).collect()
}

fn member_with_id(view: View<'_>, members: &BTreeMap<String, Access>, user: &str) -> Result<Value, Problem> {
    let mut members = members.iter();
    let found = members.find(|(name, _)| number_of(name).to_string() == user);
    let (name, access) = found.ok_or_else(|| Problem::not_found(""))?;
    Ok(shown_member(view, name, *access))
}

fn shown_member(view: View<'_>, name: &str, access: Access) -> Value {
    let mut shown = view.user(name);
    let more = json!({"access_level": access as u8, "expires_at": null, "membership_state": "active", "created_at": "2020-01-01T00:00:00.000Z"});
    add(&mut shown, more);
    shown
}

pub async fn branches(Shared(lab): Shared<Lab>, viewer: Viewer, Path(project): Path<String>, query: Query) -> Answer {
    let found = lab.show(&viewer, |view| {
        let project = find(view.state, &viewer, &project)?;
        Ok(project
            .git
            .branches()
            .iter()
            .map(|(name, id)| view.branch(project, name, id))
            .collect())
    })?;
    page(&query, &lab.api(), found)
}

pub async fn branch(
    Shared(lab): Shared<Lab>,
    viewer: Viewer,
    Path((project, branch)): Path<(String, String)>,
) -> Answer {
    ok(lab.show(&viewer, |view| {
        let project = find(view.state, &viewer, &project)?;
        let id = project
            .git
            .resolve(&format!("refs/heads/{branch}"))
            .ok_or_else(|| Problem::not_found("Branch"))?;
        Ok(view.branch(project, &branch, &id))
    })?)
}

pub async fn create_branch(
    Shared(lab): Shared<Lab>,
    viewer: Viewer,
    Path(project): Path<String>,
    fields: Fields,
) -> Answer {
    let project = lab.allow(&viewer, &project, Access::Developer)?;
    let branch = fields.text("branch").ok_or_else(|| Problem::missing("branch"))?;
    let start = fields.text("ref").ok_or_else(|| Problem::missing("ref"))?;
    let wrong = |why: &str| Problem::new(StatusCode::BAD_REQUEST, json!(why));
    let id = lab.change(|state| {
        let git = &state
            .project(&project)
            .ok_or_else(|| Problem::not_found("Project"))?
            .git;
        if git.resolve(&format!("refs/heads/{branch}")).is_some() {
            return Err(wrong("Branch already exists"));
        }
        let id = git
            .resolve(start)
            .ok_or_else(|| wrong(&format!("Invalid reference name: {start}")))?;
        git.set_reference(&format!("refs/heads/{branch}"), &id);
        state.pushed(&project, &viewer.0);
        Ok(id)
    })?;
    created(lab.show(&viewer, |view| {
        Ok::<_, Problem>(view.branch(find(view.state, &viewer, &project)?, branch, &id))
    })?)
}

/// Takes a file in the one form that GitLab takes: the field `file` of a form of several parts.
pub async fn upload(
    Shared(lab): Shared<Lab>,
    viewer: Viewer,
    Path(project): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer {
    lab.allow(&viewer, &project, Access::Guest)?;
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok());
    let boundary = kind.and_then(|kind| kind.strip_prefix("multipart/form-data; boundary="));
    let boundary = boundary.ok_or_else(|| Problem::missing("file"))?;
    let (name, bytes) = only_part(&body, boundary).ok_or_else(|| Problem::missing("file"))?;
    let url = lab.change(|state| {
        let secret = format!("{:032x}", state.uploads.len() + 1);
        state.uploads.insert(format!("{secret}/{name}"), bytes);
        format!("/uploads/{secret}/{name}")
    });
    created(json!({
        "id": 1, "alt": name, "url": url, "full_path": format!("/-/project/1{url}"), "markdown": format!("![{name}]({url})"),
    }))
}

pub async fn uploaded(
    Shared(lab): Shared<Lab>,
    viewer: Viewer,
    Path((project, secret, file)): Path<(String, String, String)>,
) -> Answer {
    lab.read(|state| find(state, &viewer, &project).map(|_| ()))?;
    let bytes = lab.read(|state| state.uploads.get(&format!("{secret}/{file}")).cloned());
    let bytes = bytes.ok_or_else(|| Problem::not_found("File"))?;
    Ok(bytes.into_response())
}

/// Returns name and bytes of the field `file`, if a form holds that alone.
fn only_part(body: &[u8], boundary: &str) -> Option<(String, Vec<u8>)> {
    let at = |bytes: &[u8], wanted: &[u8]| bytes.windows(wanted.len()).position(|part| part == wanted);
    let rest = body.strip_prefix(format!("--{boundary}\r\n").as_bytes())?;
    let head = at(rest, b"\r\n\r\n")?;
    let (head, rest) = (std::str::from_utf8(&rest[..head]).ok()?, &rest[head + 4..]);
    let end = at(rest, format!("\r\n--{boundary}--").as_bytes())?;
    let (_, name) = head.split_once("form-data; name=\"file\"; filename=\"")?;
    Some((name.split('"').next()?.to_owned(), rest[..end].to_vec()))
}
