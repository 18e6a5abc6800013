//! GitHub Apps: a signed token that says "I am the App", exchanged for tokens that reach
//! repositories.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::Path;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use serde_json::Value;
use serde_json::json;

use crate::fake::github::api::answer::Answer;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::answer::created;
use crate::fake::github::api::answer::ok;
use crate::fake::github::api::answer::page;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::hub::Viewer;
use crate::fake::github::api::view::View;
use crate::fake::github::api::view::node;
use crate::fake::github::api::view::number_of;
use crate::fake::github::api::view::text;
use crate::fake::github::state::Permission;
use crate::fake::github::state::State;
use crate::fake::github::state::now;
use crate::fake::github::tokens::App;
use crate::fake::github::tokens::Narrow;
use crate::fake::github::tokens::Token;
use crate::fake::request::Fields;
use crate::fake::request::Query;

pub async fn app(Shared(hub): Shared<Hub>, viewer: Viewer) -> Answer {
    let app = require(&hub, &viewer)?;
    let slug = &app.slug;
    ok(json!({
        "id": app.id, "slug": slug, "node_id": node("A", app.id), "name": slug, "description": null,
        "client_id": format!("Iv1.{}", app.id), "external_url": hub.origin,
        "html_url": format!("{}/apps/{slug}", hub.origin),
        "created_at": "2020-01-01T00:00:00Z", "updated_at": "2020-01-01T00:00:00Z", "permissions": app.permissions,
        "events": [], "owner": hub.show(&viewer, |view| view.user("acme")), "installations_count": 1,
    }))
}

pub async fn installations(Shared(hub): Shared<Hub>, viewer: Viewer, query: Query) -> Answer {
    let app = require(&hub, &viewer)?;
    let all = hub.show(&viewer, |view| vec![installed(view, &app, "acme")]);
    page(&query, &hub.api(), all)
}

pub async fn installation(
    Shared(hub): Shared<Hub>,
    viewer: Viewer,
    Path((owner, name)): Path<(String, String)>,
) -> Answer {
    let app = require(&hub, &viewer)?;
    ok(hub.show(&viewer, |view| {
        let place = view
            .state
            .repository(&format!("{owner}/{name}"))
            .ok_or_else(Problem::not_found)?;
        let bot = format!("{}[bot]", app.slug);
        if place.permission(&bot) == Permission::None {
            return Err(Problem::not_found());
        }
        Ok(installed(view, &app, &place.owner))
    })?)
}

pub async fn installation_of(Shared(hub): Shared<Hub>, viewer: Viewer, Path(login): Path<String>) -> Answer {
    let app = require(&hub, &viewer)?;
    if !hub.read(|state| state.organizations.contains(&login)) {
        return Err(Problem::not_found());
    }
    ok(hub.show(&viewer, |view| installed(view, &app, &login)))
}

pub async fn create_token(Shared(hub): Shared<Hub>, viewer: Viewer, Path(id): Path<u64>, fields: Fields) -> Answer {
    let app = require(&hub, &viewer)?;
    if id != app.installation {
        return Err(Problem::not_found());
    }
    let narrow = hub.read(|state| narrowed(state, &app, &fields))?;
    let (permissions, selection) = (
        narrow.permissions.clone(),
        if narrow.repositories.is_some() {
            "selected"
        } else {
            "all"
        },
    );
    let token = hub.change(|state| {
        let token = format!("ghs_{:036}", state.next_id());
        let login = format!("{}[bot]", app.slug);
        state.tokens.insert(
            token.clone(),
            Token {
                login,
                scopes: None,
                installation: Some(narrow),
            },
        );
        token
    });
    created(json!({
        "token": token, "expires_at": text(now() + chrono::Duration::hours(1)), "permissions": permissions,
        "repository_selection": selection,
    }))
}

/// Says what a token is to be good for; nothing that the installation has not.
fn narrowed(state: &State, app: &App, fields: &Fields) -> Result<Narrow, Problem> {
    let refuse = |message: &str| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, message);
    let bot = format!("{}[bot]", app.slug);
    let reached: Vec<_> = state
        .repositories
        .iter()
        .filter(|place| place.permission(&bot) > Permission::Read)
        .collect();
    let mut repositories = None;
    if let Some(names) = fields.list("repositories") {
        let mut found = BTreeSet::new();
        for name in names {
            let place = reached.iter().find(|place| place.name.eq_ignore_ascii_case(&name));
            let place = place.ok_or_else(|| {
                refuse("There is at least one repository that does not exist or is not accessible to the parent installation.")
            })?;
            found.insert(place.full_name().to_lowercase());
        }
        repositories = Some(found);
    }
    let accepted = app.accepted();
    let mut permissions = accepted.clone();
    let wanted = fields.0.get("permissions").and_then(Value::as_object);
    // Clients send an empty object where nobody asked for less, and get what the installation has.
    if let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) {
        permissions.clear();
        for (name, access) in wanted {
            let access = access.as_str().unwrap_or_default();
            let given = accepted.get(name).map(String::as_str);
            if given != Some("write") && given != Some(access) {
                return Err(refuse(
                    "The permissions requested are not granted to this installation.",
                ));
            }
            permissions.insert(name.clone(), access.to_owned());
        }
    }
    Ok(Narrow {
        repositories,
        permissions,
        unknown_for: state.unknown_at_first,
        unknown_to_git: Arc::new(state.unknown_at_first.into()),
    })
}

pub async fn repositories(Shared(hub): Shared<Hub>, viewer: Viewer, query: Query) -> Answer {
    let all = hub.show(&viewer, |view| {
        let visible = view.state.repositories.iter().filter(|place| viewer.sees(place));
        visible.map(|place| view.repository(place)).collect::<Vec<_>>()
    });
    let page = query.page(all, 30);
    ok(json!({"total_count": page.total, "repositories": page.items}))
}

fn require(hub: &Hub, viewer: &Viewer) -> Result<App, Problem> {
    let app = hub.read(|state| state.app.clone()).filter(|_| viewer.is_app);
    app.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "A JSON web token could not be decoded"))
}

fn installed(view: View<'_>, app: &App, owner: &str) -> Value {
    let url = format!("{}/app/installations/{}", view.api, app.installation);
    json!({
        "id": app.installation, "account": view.user(owner), "repository_selection": "all",
        "access_tokens_url": format!("{url}/access_tokens"),
        "repositories_url": format!("{}/installation/repositories", view.api),
        "html_url": format!("{}/settings/installations/{}", view.web, app.installation), "app_id": app.id,
        "app_slug": app.slug, "target_id": number_of(owner), "target_type": "Organization",
        "permissions": app.accepted(), "events": [], "single_file_name": null, "has_multiple_single_files": false,
        "single_file_paths": [], "created_at": "2020-01-01T00:00:00Z", "updated_at": "2020-01-01T00:00:00Z",
        "suspended_by": null, "suspended_at": null, "client_id": format!("Iv1.{}", app.id),
    })
}
