//! The paths of GitLab's REST API that the fake knows. Everything else is noted down and answered
//! 404.

mod answer;
mod graph;
mod items;
mod lab;
mod labels;
mod merge_requests;
mod notes;
mod pipelines;
mod projects;
mod view;

use axum::Json;
use axum::Router;
use axum::extract::Request;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::response::Response;
use axum::routing::get;
use axum::routing::post;
use serde_json::json;

use crate::fake::forge;
use crate::fake::git_http;
use crate::fake::gitlab::api::lab::Lab;
use crate::fake::gitlab::state::State;

/// Returns the API under `/api/v4`, and git beside it.
pub fn router(lab: &Lab) -> Router {
    let api = people().merge(project()).merge(merge_request());
    let api = api.merge(item("issues")).merge(item("merge_requests"));
    let app = Router::new()
        .nest("/api/v4", api)
        .route("/api/graphql", post(graph::answer))
        .fallback(others)
        .method_not_allowed_fallback(others);
    let app = app.with_state(lab.clone());
    let app = app
        .layer(from_fn_with_state(lab.clone(), forge::conditional::<State>))
        .layer(from_fn_with_state(lab.clone(), lab::check));
    app.layer(from_fn_with_state(lab.clone(), forge::front_door::<State>))
}

fn people() -> Router<Lab> {
    Router::new()
        .route("/user", get(projects::viewer))
        .route("/version", get(projects::version))
        .route("/metadata", get(projects::version))
        .route("/personal_access_tokens/self", get(projects::token))
        .route("/users", get(projects::users))
        .route("/users/{id}", get(projects::user_by_id))
        .route("/groups/{group}", get(projects::group))
        .route("/groups/{group}/projects", get(projects::of_group))
        .route("/groups/{group}/issues", get(items::issues_of_group))
        .route("/groups/{group}/merge_requests", get(items::merge_requests_of_group))
        .route("/projects", get(projects::list))
        .route("/issues", get(items::all_issues))
        .route("/merge_requests", get(items::all_merge_requests))
}

fn project() -> Router<Lab> {
    Router::new()
        .route("/projects/{project}", get(projects::one))
        .route("/projects/{project}/labels", get(labels::list).post(labels::create))
        .route("/projects/{project}/labels/{label}", get(labels::one))
        .route("/projects/{project}/members", get(projects::members))
        .route("/projects/{project}/members/all", get(projects::all_members))
        .route("/projects/{project}/members/{user}", get(projects::member))
        .route("/projects/{project}/members/all/{user}", get(projects::any_member))
        .route("/projects/{project}/uploads", post(projects::upload))
        .route("/projects/{project}/uploads/{secret}/{file}", get(projects::uploaded))
        .route(
            "/projects/{project}/repository/branches",
            get(projects::branches).post(projects::create_branch),
        )
        .route(
            "/projects/{project}/repository/branches/{branch}",
            get(projects::branch),
        )
}

/// Returns the routes that issues and merge requests have in common.
fn item(kind: &str) -> Router<Lab> {
    let one = format!("/projects/{{project}}/{kind}/{{iid}}");
    let create = if kind == "issues" {
        post(items::create_issue)
    } else {
        post(merge_requests::create)
    };
    Router::new()
        .route(&format!("/projects/{{project}}/{kind}"), create.get(items::list))
        .route(&one, get(items::one).put(items::edit).delete(items::delete))
        .route(&format!("{one}/notes"), get(notes::list).post(notes::create))
        .route(
            &format!("{one}/notes/{{note}}"),
            get(notes::one).put(notes::edit).delete(notes::delete),
        )
        .route(
            &format!("{one}/notes/{{note}}/award_emoji"),
            get(notes::awards).post(notes::award),
        )
        .route(&format!("{one}/discussions"), get(notes::discussions))
        .route(&format!("{one}/discussions/{{discussion}}"), get(notes::discussion))
        .route(&format!("{one}/discussions/{{discussion}}/notes"), post(notes::reply))
        .route(&format!("{one}/resource_label_events"), get(labels::events))
}

fn merge_request() -> Router<Lab> {
    Router::new()
        .route(
            "/projects/{project}/merge_requests/{iid}/commits",
            get(merge_requests::commits),
        )
        .route(
            "/projects/{project}/merge_requests/{iid}/pipelines",
            get(pipelines::of_merge_request),
        )
        .route("/projects/{project}/pipelines/{pipeline}/jobs", get(pipelines::jobs))
        .route(
            "/projects/{project}/repository/commits/{commit}/statuses",
            get(pipelines::statuses),
        )
        .route("/projects/{project}/jobs/{job}/trace", get(pipelines::trace))
        .route(
            "/projects/{project}/merge_requests/{iid}/diffs",
            get(merge_requests::diffs),
        )
        .route(
            "/projects/{project}/merge_requests/{iid}/changes",
            get(merge_requests::changes),
        )
}

/// Hands the git protocol on, and notes everything else down as unknown.
async fn others(Shared(lab): Shared<Lab>, request: Request) -> Response {
    if forge::is_git(request.uri().path()) {
        return git_http::serve(lab, request).await;
    }
    lab.traffic
        .record_unknown(format!("{} {}", request.method(), request.uri()));
    (StatusCode::NOT_FOUND, Json(json!({"error": "404 Not Found"}))).into_response()
}
