//! Who asks, and what that person may do: the parts that every handler begins with.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
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
use percent_encoding::percent_decode_str;
use serde_json::json;

use crate::fake::forge;
use crate::fake::forge::Forge;
use crate::fake::gitlab::api::answer::Problem;
use crate::fake::gitlab::api::view::View;
use crate::fake::gitlab::state::Access;
use crate::fake::gitlab::state::Item;
use crate::fake::gitlab::state::Kind;
use crate::fake::gitlab::state::Place;
use crate::fake::gitlab::state::Project;
use crate::fake::gitlab::state::State;

pub type Lab = Arc<Forge<State>>;

/// Who sent a request.
#[derive(Clone, Debug)]
pub struct Viewer(pub String);

/// The project, and the issue or merge request, that a path such as `/projects/7/issues/1/notes`
/// names.
#[derive(Clone, Debug)]
pub struct Spot {
    pub project: String,
    pub kind: Kind,
    pub iid: u64,
}

impl Forge<State> {
    pub fn api(&self) -> String {
        format!("{}/api/v4", self.origin)
    }

    /// Shows something of the state to a viewer.
    pub fn show<R>(&self, viewer: &Viewer, show: impl FnOnce(View<'_>) -> R) -> R {
        let api = self.api();
        self.read(|state| {
            show(View {
                state,
                api: &api,
                web: &self.origin,
                viewer: &viewer.0,
            })
        })
    }

    /// Finds the project that the viewer wants to change, and checks that this is allowed.
    pub fn allow(&self, viewer: &Viewer, project: &str, needed: Access) -> Result<String, Problem> {
        self.read(|state| {
            let project = find(state, viewer, project)?;
            if project.is_archived || project.access(&viewer.0) < needed {
                return Err(Problem::forbidden());
            }
            Ok(project.path.clone())
        })
    }

    /// Finds the item that the viewer wants to change, and checks that this is allowed.
    pub fn allow_item(&self, viewer: &Viewer, spot: &Spot, needed: Access) -> Result<Place, Problem> {
        let project = self.allow(viewer, &spot.project, needed)?;
        self.read(|state| find_item(state, viewer, spot).map(|_| ()))?;
        Ok(Place {
            project,
            kind: spot.kind,
            iid: spot.iid,
        })
    }
}

/// Finds a project that the viewer may see.
pub fn find<'a>(state: &'a State, viewer: &Viewer, project: &str) -> Result<&'a Project, Problem> {
    let found = state
        .project(project)
        .filter(|project| project.access(&viewer.0) > Access::None);
    found.ok_or_else(|| Problem::not_found("Project"))
}

pub fn find_item<'a>(state: &'a State, viewer: &Viewer, spot: &Spot) -> Result<(&'a Project, &'a Item), Problem> {
    let project = find(state, viewer, &spot.project)?;
    let item = project.items(spot.kind).get(&spot.iid);
    let item = item.filter(|item| !item.is_deleted && project.shows_confidential(item, &viewer.0));
    item.map(|item| (project, item)).ok_or_else(|| Problem::not_found(""))
}

/// Checks the token and its scopes, before anything is looked up.
pub async fn check(Shared(lab): Shared<Lab>, mut request: Request, next: Next) -> Response {
    if forge::is_git(request.uri().path()) {
        return next.run(request).await;
    }
    if let Some(refusal) = lab.read(limited) {
        return refusal;
    }
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    let may_write = request.uri().path().ends_with("/graphql") || lab.read(|state| !state.is_in_maintenance);
    if !is_reading && !may_write {
        return Problem::read_only().into_response();
    }
    match lab.read(|state| viewer(state, request.headers(), is_reading)) {
        Ok(viewer) => request.extensions_mut().insert(viewer),
        Err(problem) => return problem.into_response(),
    };
    if let Some(elsewhere) = lab.read(|state| moved(state, &request)) {
        return elsewhere;
    }
    let mut answer = next.run(request).await;
    let headers = answer.headers_mut();
    headers.insert("ratelimit-limit", HeaderValue::from(2000));
    headers.insert("ratelimit-remaining", HeaderValue::from(1999));
    headers.insert("x-request-id", HeaderValue::from_static("FAKE0001"));
    answer
}

/// Redirects who reads at the path that a project had, and refuses to write there.
fn moved(state: &State, request: &Request) -> Option<Response> {
    let address = request.uri().path_and_query()?.as_str();
    let rest = address.strip_prefix("/api/v4/projects/")?;
    let (name, part) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let name = percent_decode_str(name).decode_utf8_lossy().into_owned();
    let project = state.project(state.moved.get(&name)?)?;
    if request.method() != Method::GET {
        let why = "405 Method Not Allowed - Non GET methods are not allowed for moved projects";
        return Some((StatusCode::METHOD_NOT_ALLOWED, Json(json!({ "message": why }))).into_response());
    }
    let there = format!("/api/v4/projects/{}{part}", project.id);
    Some((StatusCode::MOVED_PERMANENTLY, [(header::LOCATION, there)]).into_response())
}

fn viewer(state: &State, headers: &HeaderMap, is_reading: bool) -> Result<Viewer, Problem> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text("authorization").and_then(|given| given.strip_prefix("Bearer "));
    let token = text("private-token")
        .or(bearer)
        .and_then(|token| state.tokens.get(token));
    let token = token.ok_or_else(Problem::unauthorized)?;
    let has = |scope: &str| token.scopes.iter().any(|given| given == scope);
    if has("api") || (is_reading && has("read_api")) {
        return Ok(Viewer(token.username.clone()));
    }
    Err(Problem::narrow(if is_reading { "api read_api" } else { "api" }))
}

/// Refuses everything for a while, in plain text as the guard in front of GitLab does.
fn limited(state: &State) -> Option<Response> {
    let (until, seconds) = state.limited_until?;
    (Instant::now() < until).then(|| {
        let headers = [
            (header::RETRY_AFTER, seconds.to_string()),
            (header::CONTENT_TYPE, "text/plain".to_owned()),
        ];
        (StatusCode::TOO_MANY_REQUESTS, headers, "Retry later\n").into_response()
    })
}

impl<S: Sync> FromRequestParts<S> for Viewer {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(Problem::unauthorized)
    }
}

impl<S: Sync> FromRequestParts<S> for Spot {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut segments = parts
            .uri
            .path()
            .split('/')
            .skip_while(|segment| *segment != "projects")
            .skip(1);
        let project = segments.next().unwrap_or_default();
        let kind = match segments.next() {
            Some("merge_requests") => Kind::MergeRequest,
            _ => Kind::Issue,
        };
        let iid = segments.next().and_then(|iid| iid.parse().ok()).unwrap_or(0);
        Ok(Self {
            project: percent_decode_str(project).decode_utf8_lossy().into_owned(),
            kind,
            iid,
        })
    }
}
