//! `/user`, `/users`, `/repos/{owner}/{name}` and who may do what there.

use axum::extract::Path;
use axum::extract::State as Shared;
use serde_json::json;

use crate::fake::github::api::answer::Answer;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::answer::ok;
use crate::fake::github::api::answer::page;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::hub::Viewer;
use crate::fake::github::api::hub::find;
use crate::fake::github::api::view::merge;
use crate::fake::github::api::view::permissions;
use crate::fake::github::state::Permission;
use crate::fake::request::Query;

pub async fn viewer(Shared(hub): Shared<Hub>, viewer: Viewer) -> Answer {
    if viewer.is_installation() || viewer.is_app {
        return Err(Problem::forbidden("Resource not accessible by integration"));
    }
    ok(hub.show(&viewer, |view| {
        let mut user = view.profile(&viewer.login);
        merge(&mut user, json!({
            "private_gists": 0, "total_private_repos": 0, "owned_private_repos": 0, "disk_usage": 0, "collaborators": 0,
            "two_factor_authentication": true,
            "plan": {"name": "free", "space": 1, "private_repos": 1, "collaborators": 0},
        }));
        user
    }))
}

pub async fn user(Shared(hub): Shared<Hub>, viewer: Viewer, Path(login): Path<String>) -> Answer {
    let is_known = hub.read(|state| state.people.contains(&login) || state.organizations.contains(&login));
    if !is_known {
        return Err(Problem::not_found());
    }
    ok(hub.show(&viewer, |view| view.profile(&login)))
}

pub async fn user_by_id(Shared(hub): Shared<Hub>, viewer: Viewer, Path(id): Path<u64>) -> Answer {
    let login = hub.read(|state| state.people.iter().find(|login| state.id_of(login) == id).cloned());
    let login = login.ok_or_else(Problem::not_found)?;
    ok(hub.show(&viewer, |view| view.profile(&login)))
}

pub async fn of_owner(Shared(hub): Shared<Hub>, viewer: Viewer, Path(owner): Path<String>, query: Query) -> Answer {
    let found = hub.show(&viewer, |view| {
        let all = view
            .state
            .repositories
            .iter()
            .filter(|place| place.owner.eq_ignore_ascii_case(&owner));
        let visible = all.filter(|place| place.permission(&viewer.login) > Permission::None);
        visible.map(|place| view.repository(place)).collect::<Vec<_>>()
    });
    let is_known = hub.read(|state| state.people.contains(&owner) || state.organizations.contains(&owner));
    if found.is_empty() && !is_known {
        return Err(Problem::not_found());
    }
    page(&query, &hub.api(), found)
}

pub async fn of_viewer(Shared(hub): Shared<Hub>, viewer: Viewer, query: Query) -> Answer {
    let found = hub.show(&viewer, |view| {
        let mine = view
            .state
            .repositories
            .iter()
            .filter(|place| place.members.contains_key(&viewer.login));
        mine.map(|place| view.repository(place)).collect()
    });
    page(&query, &hub.api(), found)
}

pub async fn one(Shared(hub): Shared<Hub>, viewer: Viewer, Path(place): Path<(String, String)>) -> Answer {
    ok(hub.show(&viewer, |view| {
        Ok(view.whole_repository(find(view.state, &viewer, &place)?))
    })?)
}

pub async fn permission(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name, login)): Path<(String, String, String)>,
) -> Answer {
    ok(hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &(owner, name))?;
        if place.permission(&viewer.login) < Permission::Write {
            return Err(Problem::forbidden(
                "Must have push access to view collaborator permission.",
            ));
        }
        let mut people = view.state.people.iter();
        let Some(login) = people.find(|known| known.eq_ignore_ascii_case(&login)) else {
            return Err(Problem::new(
                axum::http::StatusCode::NOT_FOUND,
                &format!("{login} is not a user"),
            ));
        };
        let permission = place.permission(login);
        let role = permission.name();
        let mut user = view.user(login);
        merge(
            &mut user,
            json!({"role_name": role, "permissions": permissions(permission)}),
        );
        Ok(json!({"permission": permission.old_name(), "role_name": role, "user": user}))
    })?)
}

pub async fn assignees(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path(place): Path<(String, String)>,
    query: Query,
) -> Answer {
    let found = hub.show(&viewer, |view| {
        let place = find(view.state, &viewer, &place)?;
        let may = place
            .members
            .iter()
            .filter(|(_, permission)| **permission >= Permission::Read);
        Ok(may.map(|(login, _)| view.user(login)).collect())
    })?;
    page(&query, &hub.api(), found)
}

pub async fn rate_limit(Shared(hub): Shared<Hub>) -> Answer {
    let (left, reset) = hub.read(|state| (state.allowance.left, state.allowance.reset.timestamp()));
    let core = json!({"limit": 5000, "remaining": left, "used": 5000_u64.saturating_sub(left), "reset": reset});
    ok(json!({"resources": {"core": core, "search": core}, "rate": core}))
}
