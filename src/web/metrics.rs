//! Figures for Prometheus, in its text format: counters of what happened, from the facts in the
//! store, and gauges of what is.
//!
//! Counters begin anew with the process, from the first fact in the store, so they are the same
//! whichever process is asked. Labels are words of the program and names of the configuration,
//! never of tasks, people or repositories.

mod forges;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use chrono::{DateTime, Utc};
use prometheus::core::Collector;
use prometheus::{
    CounterVec, Encoder, GaugeVec, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
    TextEncoder,
};

use self::forges::ForgeMeters;
use super::Web;
use super::problem::Problem;
use crate::conversation::Usage;
use crate::journal::Journal;
use crate::journal::fact::{Entry, Fact};
use crate::service::Service;
use crate::store::{FactFilter, Store};
use crate::task::id::RunId;
use crate::task::state::State as RunState;

/// Upper bounds of the time that a stage takes, in seconds.
const STAGE_SECONDS: [f64; 10] = [1.0, 5.0, 15.0, 30.0, 60.0, 180.0, 600.0, 1_800.0, 3_600.0, 14_400.0];
/// Upper bounds of the time of a model's reply, in seconds.
const REPLY_SECONDS: [f64; 9] = [0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 180.0, 600.0];
/// Runs whose stage is remembered at once; of the rest the stage that they are in is not measured.
const MOST_RUNS: usize = 10_000;
/// Time for which an answer of the engine counts, and longest wait for one.
const ENGINE_FRESH: Duration = Duration::from_secs(5);
const ENGINE_PATIENCE: Duration = Duration::from_secs(2);

/// The counters.
pub(super) struct Meters {
    registry: Registry,
    runs: IntCounterVec,
    stages: HistogramVec,
    models: ModelMeters,
    tools: IntCounterVec,
    refusals: IntCounterVec,
    environments: IntCounterVec,
    start_seconds: GaugeVec,
    egress_refused: IntCounterVec,
    deliveries: IntCounterVec,
    forges: ForgeMeters,
    unfinished: IntGaugeVec,
    workers: IntGaugeVec,
    engine: EngineMeters,
    /// When each run entered the stage that it is in.
    since: Mutex<HashMap<RunId, (DateTime<Utc>, RunState)>>,
}

/// The meters of models: calls, reply times, tokens and cost.
struct ModelMeters {
    calls: IntCounterVec,
    replies: HistogramVec,
    tokens: IntCounterVec,
    cost: CounterVec,
}

/// The meters of the container engine.
struct EngineMeters {
    up: IntGauge,
    containers: IntGauge,
    /// Time at which the engine was asked last.
    last: tokio::sync::Mutex<Option<Instant>>,
}

type Made<T> = prometheus::Result<T>;

/// Adds a figure to the registry.
fn added<T: Collector + Clone + 'static>(registry: &Registry, figure: T) -> Made<T> {
    registry.register(Box::new(figure.clone()))?;
    Ok(figure)
}

fn counter(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> Made<IntCounterVec> {
    added(registry, IntCounterVec::new(Opts::new(name, help), labels)?)
}

fn gauge(registry: &Registry, name: &str, help: &str, labels: &[&str]) -> Made<IntGaugeVec> {
    added(registry, IntGaugeVec::new(Opts::new(name, help), labels)?)
}

fn single(registry: &Registry, name: &str, help: &str) -> Made<IntGauge> {
    added(registry, IntGauge::new(name, help)?)
}

fn histogram(registry: &Registry, name: &str, help: &str, bounds: &[f64], label: &str) -> Made<HistogramVec> {
    let options = HistogramOpts::new(name, help).buckets(bounds.to_vec());
    added(registry, HistogramVec::new(options, &[label])?)
}

impl ModelMeters {
    fn new(registry: &Registry) -> Made<Self> {
        let by = ["model", "role"];
        let cost = Opts::new(
            "coding_agent_model_cost_usd_total",
            "Cost of models by their prices, in US dollars.",
        );
        Ok(Self {
            calls: counter(registry, "coding_agent_model_requests_total", "Replies of models.", &by)?,
            replies: histogram(
                registry,
                "coding_agent_model_reply_duration_seconds",
                "Time until a model's reply was whole.",
                &REPLY_SECONDS,
                "model",
            )?,
            tokens: counter(
                registry,
                "coding_agent_model_tokens_total",
                "Tokens of models; cached ones are part of input.",
                &["model", "role", "kind"],
            )?,
            cost: added(registry, CounterVec::new(cost, &by)?)?,
        })
    }
}

impl EngineMeters {
    fn new(registry: &Registry) -> Made<Self> {
        Ok(Self {
            up: single(
                registry,
                "coding_agent_engine_up",
                "Whether the engine of the containers answers this process.",
            )?,
            containers: single(
                registry,
                "coding_agent_containers",
                "Containers of this installation on the engine, those that wait for runs included.",
            )?,
            last: tokio::sync::Mutex::default(),
        })
    }

    /// Asks the engine how many containers there are, unless it said so a moment ago.
    async fn look(&self, service: &Service) {
        let mut last = self.last.lock().await;
        if last.is_some_and(|at| at.elapsed() < ENGINE_FRESH) {
            return;
        }
        let count = service.count_containers(ENGINE_PATIENCE).await;
        self.up.set(i64::from(count.is_some()));
        self.containers
            .set(i64::try_from(count.unwrap_or_default()).unwrap_or(i64::MAX));
        *last = Some(Instant::now());
    }
}

impl Meters {
    pub(super) fn new() -> Made<Self> {
        let registry = Registry::new();
        let start = Opts::new(
            "coding_agent_environment_start_seconds",
            "Seconds that the last start of an environment took.",
        );
        let named = |name: &str, help: &str, label: &str| counter(&registry, name, help, &[label]);
        let shown = |name: &str, help: &str, label: &str| gauge(&registry, name, help, &[label]);
        Ok(Self {
            runs: named("coding_agent_runs_total", "Runs that ended, by outcome.", "outcome")?,
            stages: histogram(
                &registry,
                "coding_agent_stage_duration_seconds",
                "Time that runs spent in a stage, waits for people included.",
                &STAGE_SECONDS,
                "stage",
            )?,
            models: ModelMeters::new(&registry)?,
            tools: named(
                "coding_agent_tool_calls_total",
                "Calls of tools, by how they ended.",
                "outcome",
            )?,
            refusals: named("coding_agent_refusals_total", "What rules refused, by rule.", "rule")?,
            environments: named(
                "coding_agent_environments_started_total",
                "Containers that were started for runs, by environment.",
                "environment",
            )?,
            start_seconds: added(&registry, GaugeVec::new(start, &["environment"])?)?,
            egress_refused: named(
                "coding_agent_egress_refused_total",
                "Connections of containers that were refused.",
                "outcome",
            )?,
            deliveries: counter(
                &registry,
                "coding_agent_webhook_deliveries_total",
                "Deliveries of webhooks, by the forge or messenger and by what became of them.",
                &["forge", "outcome"],
            )?,
            forges: ForgeMeters::new(&registry)?,
            unfinished: shown("coding_agent_unfinished_runs", "Unfinished runs, by state.", "state")?,
            workers: shown(
                "coding_agent_workers",
                "Whether this process, and any other, has the store open.",
                "which",
            )?,
            engine: EngineMeters::new(&registry)?,
            since: Mutex::default(),
            registry,
        })
    }

    /// Counts facts as they come, from the first in the store on, for ever.
    pub(super) async fn follow(&self, service: &Service) {
        let (journal, store): (&Journal, &Store) = (service.journal(), service.store());
        let mut facts = journal.subscribe(store, FactFilter::All, 0);
        loop {
            let fact = facts.next().await;
            self.take(&fact.entry, service);
        }
    }

    /// Counts a delivery of a webhook.
    pub(super) fn delivered(&self, forge: &str, outcome: &str) {
        self.deliveries.with_label_values(&[forge, outcome]).inc();
    }

    fn take(&self, entry: &Entry, service: &Service) {
        match &entry.fact {
            Fact::StageChanged { from, to } => {
                if let Some(run) = entry.subject.run {
                    self.changed(run, entry.at, *from, *to);
                }
            }
            Fact::ModelCalled {
                input,
                output,
                cached,
                cache_written,
                milliseconds,
                model,
                role,
                ..
            } => {
                let usage = Usage {
                    input: *input,
                    output: *output,
                    cached: *cached,
                    cache_written: cache_written.unwrap_or_default(),
                };
                self.called(service, (model, role), &usage, *milliseconds);
            }
            Fact::ToolCalled { is_error, .. } => {
                let outcome = if *is_error { "error" } else { "ok" };
                self.tools.with_label_values(&[outcome]).inc();
            }
            Fact::PolicyRefused { rule, .. } => self.refusals.with_label_values(&[rule.as_str()]).inc(),
            Fact::EgressRefused(_) => self.egress_refused.with_label_values(&["refused"]).inc(),
            Fact::EnvironmentStarted {
                environment,
                milliseconds,
                ..
            } => {
                let name = [environment.as_str()];
                self.environments.with_label_values(&name).inc();
                self.start_seconds.with_label_values(&name).set(seconds(*milliseconds));
            }
            _ => {}
        }
    }

    fn called(&self, service: &Service, (model, role): (&str, &str), usage: &Usage, milliseconds: u64) {
        self.models.calls.with_label_values(&[model, role]).inc();
        self.models
            .replies
            .with_label_values(&[model])
            .observe(seconds(milliseconds));
        for (kind, tokens) in [
            ("input", usage.input),
            ("output", usage.output),
            ("cached", usage.cached),
        ] {
            self.models
                .tokens
                .with_label_values(&[model, role, kind])
                .inc_by(tokens);
        }
        if let Some(cost) = service.prices().cost([(model, usage)]) {
            self.models.cost.with_label_values(&[model, role]).inc_by(cost.max(0.0));
        }
    }

    fn changed(&self, run: RunId, at: DateTime<Utc>, from: RunState, to: RunState) {
        let mut since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((entered, state)) = since.remove(&run)
            && state == from
        {
            let milliseconds = (at - entered).num_milliseconds().max(0).unsigned_abs();
            self.stages
                .with_label_values(&[name(from).as_str()])
                .observe(seconds(milliseconds));
        }
        if to.is_final() {
            self.runs.with_label_values(&[to.to_string().as_str()]).inc();
        } else if since.len() < MOST_RUNS {
            since.insert(run, (at, to));
        }
    }

    /// Returns the text that Prometheus reads.
    async fn text(&self, service: &Service) -> Result<String, Problem> {
        let store = service.store();
        self.unfinished.reset();
        for (state, count) in store.unfinished_by_state().await? {
            let state = state.split(':').next().unwrap_or_default();
            let gauge = self.unfinished.with_label_values(&[state]);
            gauge.add(i64::try_from(count).unwrap_or(i64::MAX));
        }
        self.workers.with_label_values(&["this"]).set(1);
        let others = i64::from(store.has_other_workers().await?);
        self.workers.with_label_values(&["others"]).set(others);
        self.forges.look(service);
        self.engine.look(service).await;
        let mut text = Vec::new();
        TextEncoder::new()
            .encode(&self.registry.gather(), &mut text)
            .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }
}

/// Returns the first word of a state: what follows says where it goes on.
fn name(state: RunState) -> String {
    let text = state.to_string();
    text.split(':').next().unwrap_or_default().to_owned()
}

#[expect(clippy::cast_precision_loss, reason = "no time is so long")]
fn seconds(milliseconds: u64) -> f64 {
    milliseconds as f64 / 1_000.0
}

/// Answers `GET /metrics`.
pub(super) async fn show(State(web): State<Arc<Web>>) -> Response {
    if !web.service.config().http.metrics {
        return Problem::not_found("figures are switched off (http.metrics)").into_response();
    }
    match web.meters.text(&web.service).await {
        Ok(text) => (
            [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")],
            text,
        )
            .into_response(),
        Err(problem) => problem.into_response(),
    }
}
