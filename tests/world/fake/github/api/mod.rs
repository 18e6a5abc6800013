//! The paths of GitHub's REST API that the fake knows. Everything else is noted down and answered
//! 404.

mod answer;
mod app;
mod checks;
mod comments;
mod graph;
mod hub;
mod issues;
mod labels;
mod line_comments;
mod pulls;
mod refs;
mod repositories;
mod search;
mod timeline;
mod view;
mod view_pull;

use axum::Router;
use axum::extract::Request;
use axum::extract::State as Shared;
use axum::middleware::from_fn_with_state;
use axum::response::IntoResponse;
use axum::response::Response;
use axum::routing::delete;
use axum::routing::get;
use axum::routing::post;

use crate::fake::forge;
use crate::fake::git_http;
use crate::fake::github::api::answer::Problem;
use crate::fake::github::api::comments::Below;
use crate::fake::github::api::hub::Hub;
use crate::fake::github::api::line_comments::OnLines;
use crate::fake::github::state::State;

/// Returns the API at `/` as on github.com and under `/api/v3` as on an own server, and git beside
/// it.
pub fn router(hub: &Hub) -> Router {
    let api = people().merge(repository()).merge(issue()).merge(pull());
    let app = Router::new().nest("/api/v3", api.clone()).merge(api).fallback(others);
    // Beside the REST API on an own server, below its root on github.com.
    let app = app
        .route("/graphql", post(graph::answer))
        .route("/api/graphql", post(graph::answer));
    // Stands for another server.
    let app = app.route("/logs/{id}", get(checks::log));
    let app = app.route("/user-attachments/assets/{id}", get(issues::attachment));
    let app = app.method_not_allowed_fallback(others).with_state(hub.clone());
    let app = app
        .layer(from_fn_with_state(hub.clone(), forge::conditional::<State>))
        .layer(from_fn_with_state(hub.clone(), hub::check));
    app.layer(from_fn_with_state(hub.clone(), forge::front_door::<State>))
}

fn people() -> Router<Hub> {
    Router::new()
        .route("/user", get(repositories::viewer))
        .route("/user/{id}", get(repositories::user_by_id))
        .route("/users/{login}", get(repositories::user))
        .route("/users/{login}/repos", get(repositories::of_owner))
        .route("/orgs/{login}/repos", get(repositories::of_owner))
        .route("/user/repos", get(repositories::of_viewer))
        .route("/rate_limit", get(repositories::rate_limit))
        .route("/search/issues", get(search::issues))
        .route("/app", get(app::app))
        .route("/orgs/{login}/installation", get(app::installation_of))
        .route("/app/installations", get(app::installations))
        .route("/app/installations/{id}/access_tokens", post(app::create_token))
        .route("/installation/repositories", get(app::repositories))
}

fn repository() -> Router<Hub> {
    Router::new()
        .route("/repos/{owner}/{name}", get(repositories::one))
        .route("/repos/{owner}/{name}/installation", get(app::installation))
        .route(
            "/repos/{owner}/{name}/collaborators/{login}/permission",
            get(repositories::permission),
        )
        .route("/repos/{owner}/{name}/assignees", get(repositories::assignees))
        .route("/repos/{owner}/{name}/labels", get(labels::list).post(labels::create))
        .route("/repos/{owner}/{name}/labels/{label}", get(labels::one))
        .route("/repos/{owner}/{name}/activity", get(refs::activity))
        .route("/repos/{owner}/{name}/branches", get(refs::branches))
        .route("/repos/{owner}/{name}/branches/{*branch}", get(refs::branch))
        .route("/repos/{owner}/{name}/rules/branches/{*branch}", get(refs::rules))
        .route("/repos/{owner}/{name}/git/ref/{*reference}", get(refs::reference))
        .route(
            "/repos/{owner}/{name}/git/matching-refs/{*reference}",
            get(refs::matching),
        )
        .route("/repos/{owner}/{name}/git/refs", post(refs::create))
        .route("/repos/{owner}/{name}/git/refs/{*reference}", delete(refs::delete))
        .route("/repos/{owner}/{name}/commits/{*commit}", get(checks::of_commit))
        .route("/repos/{owner}/{name}/actions/runs", get(checks::workflow_runs))
        .route("/repos/{owner}/{name}/actions/runs/{id}/jobs", get(checks::jobs))
        .route("/repos/{owner}/{name}/actions/jobs/{id}/logs", get(checks::job_log))
}

fn issue() -> Router<Hub> {
    Router::new()
        .route("/repos/{owner}/{name}/issues", get(issues::list).post(issues::create))
        .route(
            "/repos/{owner}/{name}/issues/{number}",
            get(issues::one).patch(issues::edit).post(issues::edit),
        )
        .route(
            "/repos/{owner}/{name}/issues/{number}/assignees",
            post(issues::assign).delete(issues::unassign),
        )
        .route(
            "/repos/{owner}/{name}/issues/{number}/labels",
            get(labels::of_item)
                .post(labels::add)
                .put(labels::set)
                .delete(labels::clear),
        )
        .route(
            "/repos/{owner}/{name}/issues/{number}/labels/{label}",
            delete(labels::remove),
        )
        .route(
            "/repos/{owner}/{name}/issues/{number}/comments",
            get(comments::list).post(comments::create),
        )
        .route(
            "/repos/{owner}/{name}/issues/comments/{id}",
            // GitHub takes POST where PATCH is meant.
            get(comments::one::<Below>)
                .patch(comments::edit::<Below>)
                .post(comments::edit::<Below>)
                .delete(comments::delete::<Below>),
        )
        .route(
            "/repos/{owner}/{name}/issues/comments/{id}/reactions",
            get(comments::reactions::<Below>).post(comments::react::<Below>),
        )
        .route(
            "/repos/{owner}/{name}/issues/{number}/timeline",
            get(timeline::timeline),
        )
        .route("/repos/{owner}/{name}/issues/{number}/events", get(timeline::events))
}

fn pull() -> Router<Hub> {
    Router::new()
        .route("/repos/{owner}/{name}/pulls", get(pulls::list).post(pulls::create))
        .route(
            "/repos/{owner}/{name}/pulls/{number}",
            get(pulls::one).patch(pulls::edit).post(pulls::edit),
        )
        .route(
            "/repos/{owner}/{name}/pulls/{number}/requested_reviewers",
            post(pulls::request_reviewers),
        )
        .route(
            "/repos/{owner}/{name}/pulls/{number}/comments/{id}/replies",
            post(line_comments::reply),
        )
        .route("/repos/{owner}/{name}/pulls/{number}/files", get(pulls::files))
        .route("/repos/{owner}/{name}/pulls/{number}/commits", get(pulls::commits))
        .route(
            "/repos/{owner}/{name}/pulls/{number}/comments",
            get(line_comments::list),
        )
        .route(
            "/repos/{owner}/{name}/pulls/comments/{id}",
            get(comments::one::<OnLines>)
                .patch(comments::edit::<OnLines>)
                .post(comments::edit::<OnLines>)
                .delete(comments::delete::<OnLines>),
        )
        .route(
            "/repos/{owner}/{name}/pulls/comments/{id}/reactions",
            get(comments::reactions::<OnLines>).post(comments::react::<OnLines>),
        )
        .route("/repos/{owner}/{name}/pulls/{number}/reviews", get(pulls::reviews))
        .route(
            "/repos/{owner}/{name}/pulls/{number}/reviews/{id}/comments",
            get(line_comments::of_review),
        )
}

/// Hands the git protocol on, and notes everything else down as unknown.
async fn others(Shared(hub): Shared<Hub>, request: Request) -> Response {
    if forge::is_git(request.uri().path()) {
        return git_http::serve(hub, request).await;
    }
    hub.traffic
        .record_unknown(format!("{} {}", request.method(), request.uri()));
    Problem::not_found().into_response()
}
