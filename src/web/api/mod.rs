//! The API for scripts, as a table from which both the routes and the OpenAPI document are made, so
//! that neither has what the other has not.

mod request; // what a request asks for, read and checked
mod answers; // the answers
mod events; // facts as they come
mod openapi; // the document

use std::sync::Arc;

use axum::Router;
use axum::routing::{MethodRouter, get, post};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

use super::Web;
use super::acting::Details;
use super::code::{Chunks, IngestCode, PruneCode, SearchCode};
use super::reading::detail::{LogLine, RunDetail};
use super::reading::evaluations::EvaluationView;
use super::reading::runs::{RunSummary, Status};
use crate::doctor::view::FindingView;
use crate::index::{Ingested, Pruned};
pub(super) use request::{QueryParameters, run_id};

/// An endpoint of the API.
struct Endpoint {
    is_post: bool,
    path: &'static str,
    summary: &'static str,
    /// Names of the parameters of the query, what each is, and whether it is a number.
    parameters: &'static [(&'static str, &'static str, bool)],
    body: Option<Described>,
    answer: Answers,
    route: fn() -> MethodRouter<Arc<Web>>,
}

/// Makes the schema of a type.
type Described = fn(&mut SchemaGenerator) -> Schema;

/// The form of an endpoint's answer.
#[derive(Clone, Copy)]
enum Answers {
    Json(Described),
    /// JSON about a thing with an address, which is in `Location`: with the status 201 where it was
    /// made for the request, and 200 where an earlier one had it made.
    Created(Described),
    Text(&'static str),
}

fn described<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The outcome of an action.
#[derive(Debug, serde::Serialize, JsonSchema)]
struct Acted {
    /// The outcome in a few words.
    outcome: String,
}

/// Whether automatic approval is to be on.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Switch {
    on: bool,
    /// Minutes for which it is switched on; if left out, as long as the configuration allows.
    #[serde(default)]
    minutes: Option<u32>,
}

/// A page of the history.
#[derive(Debug, serde::Serialize, JsonSchema)]
struct History {
    runs: Vec<RunSummary>,
    /// The value of `before` for the next page; null at the end.
    next: Option<String>,
}

/// A task to work on.
#[derive(Debug, Clone, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewTask {
    /// The repository, such as `github:owner/repo` or `gitlab:group/project`.
    pub(super) repository: String,
    pub(super) title: String,
    #[serde(default)]
    pub(super) text: String,
}

/// The issue that was opened for a task.
#[derive(Debug, Clone, serde::Serialize, JsonSchema)]
pub(super) struct Opened {
    /// The task, such as `github:owner/repo#12`.
    pub(super) task: String,
    pub(super) url: String,
}

const LIMIT: (&str, &str, bool) = ("limit", "How many at most.", true);
const HIDDEN: (&str, &str, bool) = ("hidden", "`true`: also those that were hidden.", false);
const RUN: (&str, &str, bool) = ("run", "Only of this run.", false);
const TASK: (&str, &str, bool) = ("task", "Only of this task, such as `github:owner/repo#12`.", false);

const ENDPOINTS: [Endpoint; 18] = [
    Endpoint {
        is_post: false,
        path: "/api/status",
        summary: "What is going on now: unfinished runs, those that wait for people first, and evaluations",
        parameters: &[],
        body: None,
        answer: Answers::Json(described::<Status>),
        route: || get(answers::status),
    },
    Endpoint {
        is_post: false,
        path: "/api/history",
        summary: "Runs, newest first",
        parameters: &[
            LIMIT,
            ("before", "Runs older than the one with this id.", false),
            (
                "state",
                "Only those in this state, such as `done`, `failed`, `paused`.",
                false,
            ),
            (
                "repository",
                "Only those of this repository, such as `github:owner/repo`.",
                false,
            ),
            HIDDEN,
        ],
        body: None,
        answer: Answers::Json(described::<History>),
        route: || get(answers::history),
    },
    Endpoint {
        is_post: false,
        path: "/api/runs/{id}",
        summary: "All that is known of a run",
        parameters: &[],
        body: None,
        answer: Answers::Json(described::<RunDetail>),
        route: || get(answers::run),
    },
    Endpoint {
        is_post: false,
        path: "/api/logs",
        summary: "The newest facts, in order",
        parameters: &[LIMIT, TASK, RUN],
        body: None,
        answer: Answers::Json(described::<Vec<LogLine>>),
        route: || get(answers::logs),
    },
    Endpoint {
        is_post: false,
        path: "/api/events",
        summary: "Facts as they come, as server-sent events; `Last-Event-ID` goes on behind that fact",
        parameters: &[
            RUN,
            TASK,
            (
                "after",
                "Begins behind the fact with this number; without it, with the next.",
                true,
            ),
        ],
        body: None,
        answer: Answers::Text("text/event-stream"),
        route: || get(events::stream),
    },
    Endpoint {
        is_post: false,
        path: "/api/stats",
        summary: "Figures over many runs",
        parameters: &[("days", "Of the last days; without it of all that is stored.", true)],
        body: None,
        answer: Answers::Json(described::<Value>),
        route: || get(answers::stats),
    },
    Endpoint {
        is_post: false,
        path: "/api/evaluations",
        summary: "Documents that other programs had evaluated, newest first",
        parameters: &[LIMIT, HIDDEN],
        body: None,
        answer: Answers::Json(described::<Vec<EvaluationView>>),
        route: || get(answers::evaluations),
    },
    Endpoint {
        is_post: false,
        path: "/api/evaluations/{id}",
        summary: "One evaluation",
        parameters: &[],
        body: None,
        answer: Answers::Json(described::<EvaluationView>),
        route: || get(answers::evaluation),
    },
    Endpoint {
        is_post: false,
        path: "/api/examination",
        summary: "Forges, engine and models: what works, what does not, and how to mend it",
        parameters: &[],
        body: None,
        answer: Answers::Json(described::<Vec<FindingView>>),
        route: || get(answers::examination),
    },
    Endpoint {
        is_post: true,
        path: "/api/runs/{id}/{action}",
        summary: "Does to a run what the command of this name does: pause, resume, stop, approve, deny, budget",
        parameters: &[],
        body: Some(described::<Details>),
        answer: Answers::Json(described::<Acted>),
        route: || post(answers::act),
    },
    Endpoint {
        is_post: true,
        path: "/api/tasks",
        summary: "Opens an issue that is worked on; with an `Idempotency-Key` once, however often it is sent",
        parameters: &[],
        body: Some(described::<NewTask>),
        answer: Answers::Created(described::<Opened>),
        route: || post(answers::open_task),
    },
    Endpoint {
        is_post: true,
        path: "/api/search",
        summary: "The places of a repository that fit a question best, in what was fetched of it last",
        parameters: &[],
        body: Some(described::<SearchCode>),
        answer: Answers::Json(described::<Chunks>),
        route: || post(answers::search_code),
    },
    Endpoint {
        is_post: true,
        path: "/api/ingest",
        summary: "Takes paths of a repository into its code index, also ones that were left out",
        parameters: &[],
        body: Some(described::<IngestCode>),
        answer: Answers::Json(described::<Ingested>),
        route: || post(answers::ingest_code),
    },
    Endpoint {
        is_post: true,
        path: "/api/prune",
        summary: "Leaves paths of a repository out of every search, until they are taken in again",
        parameters: &[],
        body: Some(described::<PruneCode>),
        answer: Answers::Json(described::<Pruned>),
        route: || post(answers::prune_code),
    },
    Endpoint {
        is_post: true,
        path: "/api/auto-approve",
        summary: "Switches automatic approval on for a time, or off",
        parameters: &[],
        body: Some(described::<Switch>),
        answer: Answers::Json(described::<Acted>),
        route: || post(answers::switch),
    },
    Endpoint {
        is_post: true,
        path: "/api/clear-history",
        summary: "Hides the finished runs and evaluations that there are from their lists; deletes nothing",
        parameters: &[],
        body: None,
        answer: Answers::Json(described::<Acted>),
        route: || post(answers::clear_history),
    },
    Endpoint {
        is_post: false,
        path: "/api/openapi.json",
        summary: "This document",
        parameters: &[],
        body: None,
        answer: Answers::Json(described::<Value>),
        route: || get(openapi::show),
    },
    Endpoint {
        is_post: false,
        path: "/metrics",
        summary: "Figures for Prometheus",
        parameters: &[],
        body: None,
        answer: Answers::Text("text/plain"),
        route: || get(super::metrics::show),
    },
];

/// Returns the routes, for those who were let in.
pub(super) fn routes() -> Router<Arc<Web>> {
    ENDPOINTS.iter().fold(Router::new(), |router, endpoint| {
        let route = (endpoint.route)().fallback(answers::wrong_method);
        router.route(endpoint.path, route)
    })
}
