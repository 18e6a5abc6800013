//! Who asks, and what that person may do: the parts that every handler begins with.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::FromRequestParts;
use axum::extract::Request;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::http::HeaderValue;
use axum::http::Method;
use axum::http::StatusCode;
use axum::http::header;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::IntoResponse;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::fake::forge;
use crate::fake::forge::Forge;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::view::View;
use crate::fake::github::state::Allowance;
use crate::fake::github::state::Item;
use crate::fake::github::state::Permission;
use crate::fake::github::state::Place;
use crate::fake::github::state::Pull;
use crate::fake::github::state::Repository;
use crate::fake::github::state::State;
use crate::fake::github::state::now;
use crate::fake::github::tokens::Narrow;

pub type Hub = Arc<Forge<State>>;

/// Who sent a request.
#[derive(Clone, Debug)]
pub struct Viewer {
    pub login: String,
    pub is_app: bool,
    /// Whether the token is a fine-grained one of a person, which has no permission for checks.
    pub is_fine_grained: bool,
    /// The repositories and permissions that a token of an installation was made for.
    pub installation: Option<Narrow>,
}

impl Viewer {
    pub fn is_installation(&self) -> bool {
        self.installation.is_some()
    }

    /// Says whether a repository can be read. A token that was made for others sees of it what
    /// everybody sees.
    pub fn sees(&self, place: &Repository) -> bool {
        let is_reached = self
            .installation
            .as_ref()
            .is_none_or(|narrow| narrow.reaches(&place.full_name()));
        (is_reached || !place.is_private) && place.permission(&self.login) > Permission::None
    }

    /// Refuses what the token of an installation was not made for: a permission that is missing, or
    /// writing elsewhere.
    fn check(&self, method: &Method, path: &str) -> Result<(), Problem> {
        let Some(narrow) = &self.installation else {
            return Ok(());
        };
        let is_write = !matches!(*method, Method::GET | Method::HEAD);
        let path = path.strip_prefix("/api/v3").unwrap_or(path);
        let Some(rest) = path.strip_prefix("/repos/") else {
            return Ok(());
        };
        let mut parts = rest.splitn(3, '/');
        let name = format!(
            "{}/{}",
            parts.next().unwrap_or_default(),
            parts.next().unwrap_or_default()
        );
        if is_write && !narrow.reaches(&name) {
            return Err(Problem::not_found());
        }
        let part = parts.next().unwrap_or_default();
        let needed: &[&str] = match part.split('/').next().unwrap_or_default() {
            // A pull request is an issue as well, and either permission will do for what both have.
            "issues" | "labels" | "assignees" => &["issues", "pull_requests"],
            "pulls" => &["pull_requests"],
            "commits" if part.ends_with("/check-runs") => &["checks"],
            "commits" if part.ends_with("/status") => &["statuses"],
            "branches" | "commits" | "git" => &["contents"],
            "actions" => &["actions"],
            _ => &["metadata"],
        };
        if narrow.may(needed, is_write) {
            return Ok(());
        }
        Err(Problem::forbidden("Resource not accessible by integration"))
    }
}

impl Forge<State> {
    pub fn api(&self) -> String {
        format!("{}/api/v3", self.origin)
    }

    /// Shows something of the state to a viewer.
    pub fn show<R>(&self, viewer: &Viewer, show: impl FnOnce(View<'_>) -> R) -> R {
        let api = self.api();
        self.read(|state| {
            show(View {
                state,
                api: &api,
                web: &self.origin,
                viewer: &viewer.login,
            })
        })
    }

    /// Says whether a viewer may change something in that repository, in GitHub's words if not.
    pub fn allow(&self, viewer: &Viewer, place: &(String, String), needed: Permission) -> Result<String, Problem> {
        self.read(|state| {
            let repository = find(state, viewer, place)?;
            if repository.is_archived {
                return Err(Problem::forbidden("Repository was archived so is read-only."));
            }
            if repository.permission(&viewer.login) < needed {
                let by = if viewer.is_installation() {
                    "integration"
                } else {
                    "personal access token"
                };
                return Err(Problem::forbidden(&format!("Resource not accessible by {by}")));
            }
            Ok(repository.full_name())
        })
    }

    /// Finds the item that the viewer wants to change, and checks that this is allowed.
    pub fn allow_item(
        &self,
        viewer: &Viewer,
        place: &(String, String),
        number: u64,
        needed: Permission,
    ) -> Result<Place, Problem> {
        let repository = self.allow(viewer, place, needed)?;
        self.read(|state| find_item(find(state, viewer, place)?, number).map(|_| ()))?;
        Ok(Place::new(&repository, number))
    }
}

/// Finds a repository that the viewer may see.
pub fn find<'a>(state: &'a State, viewer: &Viewer, place: &(String, String)) -> Result<&'a Repository, Problem> {
    let found = state.repository(&format!("{}/{}", place.0, place.1));
    let visible = found.filter(|found| viewer.sees(found));
    visible.ok_or_else(Problem::not_found)
}

pub fn find_item(place: &Repository, number: u64) -> Result<&Item, Problem> {
    let item = place.items.get(&number).ok_or_else(Problem::not_found)?;
    if item.is_deleted {
        return Err(Problem::gone());
    }
    Ok(item)
}

pub fn find_pull(place: &Repository, number: u64) -> Result<(&Item, &Pull), Problem> {
    let item = find_item(place, number)?;
    item.pull
        .as_ref()
        .map(|pull| (item, pull))
        .ok_or_else(Problem::not_found)
}

/// Checks the token and the allowance, before anything is looked up.
pub async fn check(Shared(hub): Shared<Hub>, mut request: Request, next: Next) -> Response {
    let path = request.uri().path();
    let is_open = path.starts_with("/logs/") || path.starts_with("/user-attachments/");
    if forge::is_git(path) || is_open {
        return next.run(request).await;
    }
    let (viewer, scopes) = match hub.change(|state| viewer(state, request.headers())) {
        Ok(found) => found,
        Err(problem) => return problem.into_response(),
    };
    if let Some(refusal) = hub.change(spend) {
        return refusal;
    }
    if let Err(problem) = viewer.check(request.method(), path) {
        return problem.into_response();
    }
    if let Some(elsewhere) = hub.read(|state| renamed(state, &request)) {
        return elsewhere;
    }
    let is_personal = !viewer.is_app && !viewer.is_installation();
    request.extensions_mut().insert(viewer);
    let mut answer = next.run(request).await;
    hub.change(|state| {
        // "Not modified" costs nothing.
        state.allowance.left += u64::from(answer.status() == StatusCode::NOT_MODIFIED);
        describe(state, answer.headers_mut());
        if let Some(end) = state.tokens_end.filter(|_| is_personal) {
            let end = HeaderValue::from_str(&format!("{end} 00:00:00 UTC")).expect("a day is plain text");
            answer
                .headers_mut()
                .insert("github-authentication-token-expiration", end);
        }
    });
    if let Some(scopes) = scopes {
        let scopes = HeaderValue::from_str(&scopes).expect("scopes are plain words");
        answer.headers_mut().insert("x-oauth-scopes", scopes);
    }
    answer
}

/// Redirects a request with the name that a repository had; one that writes is to be sent there as
/// it is.
fn renamed(state: &State, request: &Request) -> Option<Response> {
    let address = request.uri().path_and_query()?.as_str();
    let (base, rest) = address.split_once("/repos/")?;
    let end = rest.match_indices('/').nth(1).map(|(place, _)| place);
    let end = end.or_else(|| rest.find('?')).unwrap_or(rest.len());
    let (name, part) = rest.split_at(end);
    let now = state.renamed.get(name)?;
    let status = if request.method() == Method::GET {
        StatusCode::MOVED_PERMANENTLY
    } else {
        StatusCode::TEMPORARY_REDIRECT
    };
    Some((status, [(header::LOCATION, format!("{base}/repos/{now}{part}"))]).into_response())
}

impl<S: Sync> FromRequestParts<S> for Viewer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let viewer = parts.extensions.get::<Self>().cloned();
        viewer.ok_or_else(|| Problem::new(StatusCode::UNAUTHORIZED, "Requires authentication"))
    }
}

/// Finds out who asks, and with which scopes.
fn viewer(state: &mut State, headers: &HeaderMap) -> Result<(Viewer, Option<String>), Problem> {
    let unauthorized = |message| Problem::new(StatusCode::UNAUTHORIZED, message);
    let Some(given) = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()) else {
        return Err(unauthorized("Requires authentication"));
    };
    let token = given.split_once(' ').map_or(given, |(_, token)| token);
    if let Some(token) = state.tokens.get_mut(token) {
        if let Some(narrow) = &mut token.installation
            && narrow.unknown_for > 0
        {
            narrow.unknown_for -= 1;
            // Which of them it is depends on the server that does not know it.
            return Err(match narrow.unknown_for % 3 {
                0 => unauthorized("Bad credentials"),
                1 => Problem::not_found(),
                _ => Problem::forbidden("Resource not accessible by integration"),
            });
        }
        let viewer = Viewer {
            login: token.login.clone(),
            is_app: false,
            is_fine_grained: token.scopes.is_none() && token.installation.is_none(),
            installation: token.installation.clone(),
        };
        return Ok((viewer, token.scopes.clone()));
    }
    match &state.app {
        Some(app) if token.matches('.').count() == 2 => {
            check_claims(token, app.id).map_err(unauthorized)?;
            Ok((
                Viewer {
                    login: app.slug.clone(),
                    is_app: true,
                    is_fine_grained: false,
                    installation: None,
                },
                None,
            ))
        }
        _ => Err(unauthorized("Bad credentials")),
    }
}

/// Reads what an App's token claims. The signature is not checked: the fake has no key of the App.
fn check_claims(token: &str, app: u64) -> Result<(), &'static str> {
    const UNREADABLE: &str = "A JSON web token could not be decoded";
    let payload = token
        .split('.')
        .nth(1)
        .and_then(|part| URL_SAFE_NO_PAD.decode(part).ok())
        .ok_or(UNREADABLE)?;
    let claims: Value = serde_json::from_slice(&payload).map_err(|_| UNREADABLE)?;
    let number = |name: &str| {
        let claim = &claims[name];
        claim.as_i64().or_else(|| claim.as_str()?.parse().ok())
    };
    let now = now().timestamp();
    if number("iss") != i64::try_from(app).ok() {
        return Err("Integration not found");
    }
    if number("iat").is_none_or(|issued| issued > now) {
        return Err("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued");
    }
    match number("exp") {
        Some(expiry) if expiry <= now => Err(
            "'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires",
        ),
        Some(expiry) if expiry > now + 600 => Err("'Expiration time' claim ('exp') is too far in the future"),
        Some(_) => Ok(()),
        None => Err("Missing 'exp' claim in assertion"),
    }
}

/// Takes one request off the allowance. Returns the refusal, if nothing is left of it.
fn spend(state: &mut State) -> Option<Response> {
    let refuse = |state: &State, message: &str| {
        let mut refusal = Problem::forbidden(message).into_response();
        describe(state, refusal.headers_mut());
        refusal
    };
    if let Some((until, seconds)) = state.allowance.secondary_until {
        if Instant::now() < until {
            let message = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.";
            let mut refusal = refuse(state, message);
            refusal.headers_mut().insert(header::RETRY_AFTER, seconds.into());
            return Some(refusal);
        }
        state.allowance.secondary_until = None;
    }
    if now() >= state.allowance.reset {
        state.allowance = Allowance::default();
    }
    if state.allowance.left == 0 {
        return Some(refuse(state, "API rate limit exceeded for user ID 1."));
    }
    state.allowance.left -= 1;
    None
}

fn describe(state: &State, headers: &mut HeaderMap) {
    let left = state.allowance.left;
    headers.insert("x-ratelimit-limit", HeaderValue::from(5000));
    headers.insert("x-ratelimit-remaining", HeaderValue::from(left));
    headers.insert("x-ratelimit-used", HeaderValue::from(5000_u64.saturating_sub(left)));
    headers.insert(
        "x-ratelimit-reset",
        HeaderValue::from(state.allowance.reset.timestamp()),
    );
    headers.insert("x-ratelimit-resource", HeaderValue::from_static("core"));
    headers.insert("x-github-request-id", HeaderValue::from_static("FAKE:0001"));
    headers.insert(
        "x-github-media-type",
        HeaderValue::from_static("github.v3; format=json"),
    );
}
