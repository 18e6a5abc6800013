//! One function for each page.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{OriginalUri, Path, Query, State};
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Redirect, Response};
use minijinja::value::Serde;
use minijinja::{Value, context};
use serde::Deserialize;

use super::charts;
use super::{Frame, Language};
use crate::store::{FactFilter, Wanted};
use crate::web::Web;
use crate::web::access::Visitor;
use crate::web::acting::{ACTIONS, UNUSUAL};
use crate::web::api::{QueryParameters, run_id};
use crate::web::problem::Problem;
use crate::web::reading::examination::Examination;
use crate::web::reading::{detail, evaluations, runs, statistics};

/// Runs of the history on a page.
const PAGE: u32 = 50;
/// Facts that a run's page shows.
const LINES: u32 = 300;
/// Days that the statistics show.
const DAYS: u32 = 30;
/// Lines of a difference that are shown.
const LONGEST_DIFFERENCE: usize = 4_000;

/// The state and the frame that every page is made with.
pub(super) struct Visit {
    pub(super) web: Arc<Web>,
    pub(super) frame: Frame,
}

impl Visit {
    pub(super) fn new(web: Arc<Web>, headers: &HeaderMap, visitor: Option<Visitor>, path: &str) -> Self {
        let frame = Frame {
            language: Language::of(headers),
            visitor,
            path: path.to_owned(),
        };
        Self { web, frame }
    }

    fn page(&self, template: &str, data: Result<Value, Problem>) -> Response {
        match data {
            Ok(data) => self.web.pages.page(&self.frame, template, &data),
            Err(problem) => self.problem(&problem),
        }
    }

    pub(super) fn problem(&self, problem: &Problem) -> Response {
        self.web.pages.problem(&self.frame, problem)
    }
}

type Known = (State<Arc<Web>>, Extension<Visitor>, HeaderMap, OriginalUri);

fn visit((State(web), Extension(visitor), headers, OriginalUri(uri)): Known) -> Visit {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Visit::new(web, &headers, Some(visitor), path)
}

/// The filters of the list of runs.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Filters {
    before: String,
    state: String,
    repository: String,
    hidden: String,
}

/// The names of the states by which people filter.
const STATES: [&str; 6] = ["done", "failed", "stopped", "paused", "awaiting_approval", "working"];

pub(super) async fn runs(known: Known, Query(filters): Query<Filters>) -> Response {
    let visit = visit(known);
    let data = runs_data(&visit, &filters).await;
    visit.page("runs.html", data)
}

async fn runs_data(visit: &Visit, filters: &Filters) -> Result<Value, Problem> {
    let service = &visit.web.service;
    let before = Some(&filters.before).filter(|before| !before.is_empty());
    let wanted = Wanted {
        before: before.map(|before| run_id(before)).transpose()?,
        state: filters.state.clone(),
        repository: filters.repository.clone(),
        with_hidden: filters.hidden == "true",
    };
    let status = runs::status(service).await?;
    let history = runs::history(service, &wanted, PAGE).await?;
    let next = history.last().filter(|_| history.len() == PAGE as usize).map(|run| {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.append_pair("before", &run.id);
        for (name, value) in [
            ("state", &filters.state),
            ("repository", &filters.repository),
            ("hidden", &filters.hidden),
        ] {
            if !value.is_empty() {
                query.append_pair(name, value);
            }
        }
        query.finish()
    });
    Ok(context! {
        status => Serde(status),
        history => Serde(history),
        next,
        states => STATES,
        filters => context! {
            state => filters.state.as_str(), repository => filters.repository.as_str(), hidden => filters.hidden.as_str(),
        },
    })
}

/// The action that a form did and, where that is not the usual thing, what came of it, as the
/// address of the page after it has them. They are shown only by their names: never as a text of
/// somebody else's.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Done {
    did: String,
    came: String,
}

pub(super) async fn run(known: Known, Path(id): Path<String>, Query(done): Query<Done>) -> Response {
    let visit = visit(known);
    let data = run_data(&visit, &id, &done).await;
    visit.page("run.html", data)
}

async fn run_data(visit: &Visit, id: &str, done: &Done) -> Result<Value, Problem> {
    let service = &visit.web.service;
    let id = run_id(id)?;
    let run = detail::detail(service, id).await?;
    let run = run.ok_or_else(|| Problem::not_found("there is no such run; it may have been deleted after its time"))?;
    let log = detail::log(service, &FactFilter::OfRun(id), LINES).await?;
    let mut difference = detail::difference(service, id).await?;
    let mut left = LONGEST_DIFFERENCE;
    for file in &mut difference.files {
        if file.lines.len() > left {
            file.lines.truncate(left);
            difference.is_cut = true;
        }
        left -= file.lines.len();
    }
    let change = run
        .change
        .clone()
        .filter(|url| url.starts_with("https://") || url.starts_with("http://"));
    let did = ACTIONS.contains(&done.did.as_str()).then(|| done.did.clone());
    let came = UNUSUAL.contains(&done.came.as_str()).then(|| done.came.clone());
    Ok(context! {
        run => Serde(run),
        log => Serde(log),
        difference => Serde(difference),
        change, did, came,
    })
}

pub(super) async fn evaluations(known: Known) -> Response {
    let visit = visit(known);
    let found = evaluations::shown(&visit.web.service, 100).await;
    let data = found
        .map(|found| context! { evaluations => Serde(found) })
        .map_err(Problem::from);
    visit.page("evaluations.html", data)
}

pub(super) async fn evaluation(known: Known, Path(id): Path<String>) -> Response {
    let visit = visit(known);
    let data = match evaluations::one(&visit.web.service, &id).await {
        Ok(Some(one)) => {
            let document = serde_json::to_string_pretty(&one.evaluation).unwrap_or_default();
            Ok(context! { one => Serde(one), document })
        }
        Ok(None) => Err(Problem::not_found("there is no such evaluation")),
        Err(error) => Err(error.into()),
    };
    visit.page("evaluation.html", data)
}

pub(super) async fn statistics(known: Known) -> Response {
    let visit = visit(known);
    let data = match visit.web.reports.of(&visit.web.service, Some(DAYS)).await {
        Ok(figures) => Ok(statistics_data(&figures)),
        Err(error) => Err(error.into()),
    };
    visit.page("statistics.html", data)
}

fn statistics_data(figures: &statistics::Figures) -> Value {
    context! {
        figures => Serde(figures),
        days => DAYS,
        runs_by_day => Serde(charts::runs_by_day(&figures.days)),
        durations => Serde(charts::durations(&figures.days)),
        costs => Serde(charts::costs(&figures.models)),
    }
}

pub(super) async fn machine(known: Known) -> Response {
    let visit = visit(known);
    let findings = Examination::look(&visit.web).await;
    visit.page("machine.html", Ok(context! { findings => Serde(findings.as_slice()) }))
}

pub(super) async fn new(known: Known) -> Response {
    let visit = visit(known);
    let key = uuid::Uuid::new_v4().to_string();
    let repositories = visit.web.service.repositories();
    visit.page("new.html", Ok(context! { key, repositories }))
}

pub(super) async fn login(State(web): State<Arc<Web>>, headers: HeaderMap, query: QueryParameters) -> Response {
    let address = std::net::IpAddr::from([0, 0, 0, 0]);
    let known = web.access.identify(web.service.store(), &headers, address).await;
    if matches!(known, Ok(Ok(_))) {
        return Redirect::to("/").into_response();
    }
    let visit = Visit::new(web, &headers, None, "/login");
    let failed = query
        .text("failed")
        .filter(|failed| ["wrong", "often"].contains(failed));
    visit.page("login.html", Ok(context! { failed }))
}
