//! Lists of runs.

use schemars::JsonSchema;
use serde::Serialize;

use super::at;
use super::evaluations::{self, EvaluationView};
use crate::agent::record::Record;
use crate::agent::text::waits::{self, wait_of};
use crate::service::Service;
use crate::store::{Listed, Run, StoreError, Wanted};

/// Unfinished runs that are shown.
const MOST_UNFINISHED: usize = 200;

/// A run in a list.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct RunSummary {
    pub(in crate::web) id: String,
    pub(in crate::web) task: String,
    pub(in crate::web) title: String,
    /// The state, such as `working`, `awaiting_approval:preparing`, `done`.
    pub(in crate::web) state: String,
    pub(in crate::web) created_at: String,
    pub(in crate::web) updated_at: String,
    /// The end of the run; null while it is unfinished.
    pub(in crate::web) finished_at: Option<String>,
}

/// A run's wait for people.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct Wait {
    pub(in crate::web) what: String,
    pub(in crate::web) whom: String,
    /// When the run is closed without it.
    pub(in crate::web) until: Option<String>,
    /// The beginning of the digest to approve.
    pub(in crate::web) digest: Option<String>,
}

/// An unfinished run.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct Unfinished {
    #[serde(flatten)]
    pub(in crate::web) run: RunSummary,
    /// Why what was saved of the run cannot be read, if so. Then nothing else here that comes of it
    /// is known, and what is empty or 0 says nothing.
    pub(in crate::web) unreadable: Option<String>,
    pub(in crate::web) waits_for: Option<Wait>,
    /// The model's own account of its current work.
    pub(in crate::web) doing: String,
    pub(in crate::web) steps_finished: usize,
    pub(in crate::web) steps: usize,
    pub(in crate::web) cost_usd: Option<f64>,
}

/// The present state: unfinished runs, the pause of all runs, automatic approval, evaluations.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct Status {
    /// Whether a process is at work on this store: this one or another.
    pub(in crate::web) worker_active: bool,
    /// Whether all runs are paused.
    pub(in crate::web) paused: bool,
    pub(in crate::web) automatic_approval: AutomaticApproval,
    /// Runs that wait for people first.
    pub(in crate::web) runs: Vec<Unfinished>,
    /// Evaluations under way, newest first.
    pub(in crate::web) evaluations: Vec<EvaluationView>,
    /// Number of the newest fact. `GET /api/events` continues after it.
    pub(in crate::web) newest_fact: u64,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(in crate::web) struct AutomaticApproval {
    /// Whether the configuration allows it.
    pub(in crate::web) enabled: bool,
    pub(in crate::web) until: Option<String>,
    pub(in crate::web) by: Option<String>,
}

impl RunSummary {
    pub(in crate::web) fn of(run: &Run) -> Self {
        Self {
            id: run.id.to_string(),
            task: run.task.to_string(),
            title: run.title.clone(),
            state: run.state.to_string(),
            created_at: at(run.created_at),
            updated_at: at(run.updated_at),
            finished_at: run.state.is_final().then(|| at(run.updated_at)),
        }
    }

    fn listed(run: &Listed) -> Self {
        Self {
            id: run.id.to_string(),
            task: run.task.to_string(),
            title: run.title.clone(),
            state: run.state.to_string(),
            created_at: at(run.created_at),
            updated_at: at(run.updated_at),
            finished_at: run.finished_at.map(at),
        }
    }
}

impl Wait {
    pub(in crate::web) fn of(run: &Run, record: &Record, expire_days: u32) -> Option<Self> {
        let waits::Wait {
            what,
            whom,
            until,
            digest,
        } = wait_of(run.state, record, expire_days)?;
        Some(Self {
            what: what.to_owned(),
            whom: whom.to_owned(),
            until: until.map(at),
            digest,
        })
    }
}

/// Returns what is going on now.
pub(in crate::web) async fn status(service: &Service) -> Result<Status, StoreError> {
    let store = service.store();
    // Before the runs: what happens meanwhile is told again by the events, and not missed.
    let newest_fact = store.newest_fact().await?;
    let config = service.config();
    let mut runs: Vec<Unfinished> = store
        .unfinished()
        .await?
        .iter()
        .rev()
        .take(MOST_UNFINISHED)
        .map(|run| unfinished(service, run))
        .collect();
    runs.sort_by_key(|run| run.waits_for.is_none());
    let started = store.automatic_approval().await?;
    Ok(Status {
        worker_active: service.has_workers().await?,
        paused: store.is_paused().await?,
        automatic_approval: AutomaticApproval {
            enabled: config.approval.auto_approve.enabled,
            until: started.as_ref().map(|started| at(started.until)),
            by: started.map(|started| started.by),
        },
        runs,
        evaluations: evaluations::running(service).await?,
        newest_fact,
    })
}

fn unfinished(service: &Service, run: &Run) -> Unfinished {
    match Record::read(run) {
        Ok(record) => of(service, run, &record),
        Err(unreadable) => Unfinished {
            unreadable: Some(unreadable.to_string()),
            cost_usd: None,
            ..of(service, run, &Record::default())
        },
    }
}

fn of(service: &Service, run: &Run, record: &Record) -> Unfinished {
    let plan = record.planned.plan.as_ref();
    let steps = plan.map_or(0, |plan| plan.task_decomposition.subtasks.len());
    Unfinished {
        run: RunSummary::of(run),
        unreadable: None,
        waits_for: Wait::of(run, record, service.config().steering.expire_days),
        doing: record.worked.doing.clone(),
        steps_finished: record.worked.finished_subtasks.len().min(steps),
        steps,
        cost_usd: record.cost(service.prices()),
    }
}

/// Returns a page of the history, newest first.
pub(in crate::web) async fn history(
    service: &Service,
    wanted: &Wanted,
    most: u32,
) -> Result<Vec<RunSummary>, StoreError> {
    let runs = service.store().history(wanted, most).await?;
    Ok(runs.iter().map(RunSummary::listed).collect())
}
