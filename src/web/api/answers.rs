//! The answers to scripts.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

use super::request::{self, QueryParameters, run_id};
use super::{Acted, History, NewTask, Opened, Switch};
use crate::index::{Ingested, Pruned};
use crate::store::{FactFilter, Wanted};
use crate::web::Web;
use crate::web::access::Visitor;
use crate::web::acting::Details;
use crate::web::code::Chunks;
use crate::web::problem::Problem;
use crate::web::reading::detail::{self, LogLine, RunDetail};
use crate::web::reading::evaluations::{self, EvaluationView};
use crate::web::reading::examination::Examination;
use crate::web::reading::runs::{self, Status};
use crate::web::reading::statistics::Figures;

type Answer<T> = Result<Json<T>, Problem>;
type Shared = State<Arc<Web>>;

/// Runs and facts on a page, and at most.
const PAGE: (u32, u32) = (50, 200);
const LINES: (u32, u32) = (100, 2_000);
/// Days of the longest period.
const MOST_DAYS: u64 = 3_650;

pub(super) async fn status(State(web): Shared, query: QueryParameters) -> Answer<Status> {
    query.only(&[])?;
    Ok(Json(runs::status(&web.service).await?))
}

pub(super) async fn history(State(web): Shared, query: QueryParameters) -> Answer<History> {
    query.only(&["limit", "before", "state", "repository", "hidden"])?;
    let most = query.limit(PAGE.0, PAGE.1)?;
    let wanted = Wanted {
        before: query.parsed("before", "the id of a run")?,
        state: query.text("state").unwrap_or_default().to_owned(),
        repository: query.text("repository").unwrap_or_default().to_owned(),
        with_hidden: with_hidden(&query)?,
    };
    let runs = runs::history(&web.service, &wanted, most).await?;
    let is_full = runs.len() == usize::try_from(most).unwrap_or(usize::MAX);
    let next = runs.last().filter(|_| is_full).map(|run| run.id.clone());
    Ok(Json(History { runs, next }))
}

/// Tells whether what was hidden is asked for, too.
fn with_hidden(query: &QueryParameters) -> Result<bool, Problem> {
    Ok(query.parsed("hidden", "`true` or `false`")?.unwrap_or(false))
}

pub(super) async fn run(State(web): Shared, Path(id): Path<String>, query: QueryParameters) -> Answer<RunDetail> {
    query.only(&[])?;
    let found = detail::detail(&web.service, run_id(&id)?).await?;
    found
        .map(Json)
        .ok_or_else(|| Problem::not_found("there is no such run"))
}

pub(super) async fn logs(State(web): Shared, query: QueryParameters) -> Answer<Vec<LogLine>> {
    query.only(&["limit", "task", "run"])?;
    let most = query.limit(LINES.0, LINES.1)?;
    Ok(Json(detail::log(&web.service, &filter(&query)?, most).await?))
}

/// Returns which facts are asked for.
pub(super) fn filter(query: &QueryParameters) -> Result<FactFilter, Problem> {
    if let Some(run) = query.parsed("run", "the id of a run")? {
        return Ok(FactFilter::OfRun(run));
    }
    let task = query.parsed("task", "the id of a task, such as `github:owner/repo#12`")?;
    Ok(task.map_or(FactFilter::All, FactFilter::OfTask))
}

pub(super) async fn stats(State(web): Shared, query: QueryParameters) -> Result<Json<Figures>, Problem> {
    query.only(&["days"])?;
    let days = query
        .number("days", 1, MOST_DAYS)?
        .and_then(|days| u32::try_from(days).ok());
    let figures = web.reports.of(&web.service, days).await?;
    Ok(Json(Figures::clone(&figures)))
}

pub(super) async fn evaluations(State(web): Shared, query: QueryParameters) -> Answer<Vec<EvaluationView>> {
    query.only(&["limit", "hidden"])?;
    let most = query.limit(PAGE.0, PAGE.1)?;
    let found = if with_hidden(&query)? {
        evaluations::all(&web.service, most).await
    } else {
        evaluations::shown(&web.service, most).await
    };
    Ok(Json(found?))
}

pub(super) async fn evaluation(State(web): Shared, Path(id): Path<String>) -> Answer<EvaluationView> {
    let found = evaluations::one(&web.service, &id).await?;
    found
        .map(Json)
        .ok_or_else(|| Problem::not_found("there is no such evaluation"))
}

pub(super) async fn examination(State(web): Shared) -> Response {
    let found = Examination::look(&web).await;
    Json(found.as_slice()).into_response()
}

pub(super) async fn act(
    State(web): Shared,
    Extension(visitor): Extension<Visitor>,
    Path((id, action)): Path<(String, String)>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<Acted> {
    let details: Details = request::body(&headers, &body)?;
    let outcome = web.act(&visitor, run_id(&id)?, &action, details).await?;
    Ok(Json(Acted {
        outcome: outcome.to_string(),
    }))
}

pub(super) async fn open_task(
    State(web): Shared,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    let task: NewTask = request::body(&headers, &body)?;
    let key = headers.get("idempotency-key").map(HeaderValue::to_str);
    let key = key
        .transpose()
        .map_err(|_| Problem::bad_request("`Idempotency-Key` must be plain text"))?;
    let (opened, is_new) = web.open_task(&visitor, task, key).await?;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let link = opened.url.clone();
    let mut response = (status, Json::<Opened>(opened)).into_response();
    if let Ok(link) = link.parse() {
        response.headers_mut().insert(header::LOCATION, link);
    }
    Ok(response)
}

pub(super) async fn search_code(State(web): Shared, headers: HeaderMap, body: Bytes) -> Answer<Chunks> {
    Ok(Json(web.search_code(request::body(&headers, &body)?).await?))
}

pub(super) async fn ingest_code(State(web): Shared, headers: HeaderMap, body: Bytes) -> Answer<Ingested> {
    Ok(Json(web.ingest_code(request::body(&headers, &body)?).await?))
}

pub(super) async fn prune_code(State(web): Shared, headers: HeaderMap, body: Bytes) -> Answer<Pruned> {
    Ok(Json(web.prune_code(request::body(&headers, &body)?).await?))
}

pub(super) async fn switch(
    State(web): Shared,
    Extension(visitor): Extension<Visitor>,
    headers: HeaderMap,
    body: Bytes,
) -> Answer<Acted> {
    let Switch { on, minutes } = request::body(&headers, &body)?;
    web.switch_approval(&visitor, on, minutes).await?;
    let outcome = if on {
        "automatic approval is on"
    } else {
        "automatic approval is off"
    };
    Ok(Json(Acted {
        outcome: outcome.to_owned(),
    }))
}

pub(super) async fn clear_history(State(web): Shared, Extension(visitor): Extension<Visitor>) -> Answer<Acted> {
    web.clear_history(&visitor).await?;
    let outcome = "the finished runs that there are are hidden; nothing was deleted".to_owned();
    Ok(Json(Acted { outcome }))
}

pub(super) async fn wrong_method() -> Problem {
    let detail = "this address does not take this method; GET /api/openapi.json has what it takes";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}
