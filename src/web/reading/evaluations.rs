//! Documents that other programs had evaluated.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::at;
use crate::evaluation::stored;
use crate::service::Service;
use crate::store::{StoreError, StoredEvaluation};

/// Evaluations under way that are shown.
const MOST_RUNNING: u32 = 200;

/// An evaluation.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct EvaluationView {
    pub(in crate::web) id: String,
    pub(in crate::web) name: String,
    /// `running`, `broken off`, `passed`, `not passed` or `failed`.
    pub(in crate::web) state: String,
    pub(in crate::web) begun_at: String,
    pub(in crate::web) ended_at: Option<String>,
    pub(in crate::web) score: Option<f64>,
    pub(in crate::web) bytes: Option<u64>,
    pub(in crate::web) seconds: Option<u64>,
    pub(in crate::web) error: Option<String>,
    /// The reviewer's opinion; null where there is none.
    pub(in crate::web) evaluation: Value,
}

/// Returns the newest evaluations, those that were hidden included.
pub(in crate::web) async fn all(service: &Service, most: u32) -> Result<Vec<EvaluationView>, StoreError> {
    Ok(views(&service.store().evaluations(most).await?))
}

/// Returns the newest evaluations that are not hidden.
pub(in crate::web) async fn shown(service: &Service, most: u32) -> Result<Vec<EvaluationView>, StoreError> {
    Ok(views(&service.store().shown_evaluations(most).await?))
}

/// Returns the evaluations that are under way.
pub(in crate::web) async fn running(service: &Service) -> Result<Vec<EvaluationView>, StoreError> {
    let mut open = views(&service.store().open_evaluations(MOST_RUNNING).await?);
    open.retain(|one| one.state == "running");
    Ok(open)
}

fn views(stored: &[StoredEvaluation]) -> Vec<EvaluationView> {
    let now = Utc::now();
    stored.iter().map(|one| view(one, now)).collect()
}

/// Returns one evaluation by its whole id.
pub(in crate::web) async fn one(service: &Service, id: &str) -> Result<Option<EvaluationView>, StoreError> {
    let found = service.store().evaluations_named(id).await?;
    let whole = found.iter().find(|one| one.id.to_string() == id);
    Ok(whole.map(|one| view(one, Utc::now())))
}

fn view(one: &StoredEvaluation, now: DateTime<Utc>) -> EvaluationView {
    let document = &one.document;
    let text = |name: &str| document[name].as_str().map(str::to_owned);
    EvaluationView {
        id: one.id.to_string(),
        name: text("name").unwrap_or_default(),
        state: stored::state(one, now).to_owned(),
        begun_at: at(one.begun_at),
        ended_at: one.ended_at.map(at),
        score: document["evaluation"]["score"].as_f64(),
        bytes: document["bytes"].as_u64(),
        seconds: document["seconds"].as_u64(),
        error: text("error"),
        evaluation: document["evaluation"].clone(),
    }
}
