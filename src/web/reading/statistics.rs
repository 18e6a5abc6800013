//! Figures over many runs, as `coding-agent stats` has them, and what pictures are drawn of: runs
//! by day, durations by day, cost by model.
//!
//! They are made of all facts, so what was made counts for a while, and one makes it for all.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::{DateTime, NaiveDate, TimeDelta, Utc};
use serde::Serialize;
use tokio::sync::Mutex;

use crate::conversation::Usage;
use crate::journal::fact::{Entry, Fact};
use crate::journal::reading::each_in_store;
use crate::journal::statistics::{Report, Statistics};
use crate::service::Service;
use crate::store::{FactFilter, StoreError};
use crate::task::id::RunId;

/// Time for which a report counts.
const FRESH: Duration = Duration::from_secs(15);
/// Periods whose reports are kept.
const MOST_KEPT: usize = 8;

/// The figures of a period.
#[derive(Debug, Clone, Serialize)]
pub(in crate::web) struct Figures {
    #[serde(flatten)]
    pub(in crate::web) report: Report,
    pub(in crate::web) days: Vec<Day>,
    pub(in crate::web) models: Vec<ModelCost>,
}

/// The runs that ended on a day.
#[derive(Debug, Clone, Default, Serialize)]
pub(in crate::web) struct Day {
    pub(in crate::web) date: String,
    pub(in crate::web) done: usize,
    pub(in crate::web) failed: usize,
    pub(in crate::web) stopped: usize,
    /// Median of the durations in seconds; null where no run ended.
    pub(in crate::web) p50_seconds: Option<i64>,
    pub(in crate::web) p95_seconds: Option<i64>,
}

/// The usage of a model in a role.
#[derive(Debug, Clone, Serialize)]
pub(in crate::web) struct ModelCost {
    pub(in crate::web) model: String,
    pub(in crate::web) role: String,
    pub(in crate::web) input: u64,
    pub(in crate::web) output: u64,
    /// Null where no model has a price.
    pub(in crate::web) cost_usd: Option<f64>,
}

/// When figures were made, and the figures, by the days of their period.
type Kept = HashMap<Option<u32>, (Instant, Arc<Figures>)>;

/// The reports that were made last, by the days of their period.
#[derive(Default)]
pub(in crate::web) struct Reports {
    kept: Mutex<Kept>,
}

impl Reports {
    /// Returns the figures of the last `days`, or of all.
    pub(in crate::web) async fn of(&self, service: &Service, days: Option<u32>) -> Result<Arc<Figures>, StoreError> {
        let mut kept = self.kept.lock().await;
        if let Some((_, figures)) = kept.get(&days).filter(|(at, _)| at.elapsed() < FRESH) {
            return Ok(Arc::clone(figures));
        }
        let since = days.and_then(|days| Utc::now().checked_sub_signed(TimeDelta::days(days.into())));
        let figures = Arc::new(read(service, since).await?);
        if kept.len() >= MOST_KEPT {
            kept.clear();
        }
        kept.insert(days, (Instant::now(), Arc::clone(&figures)));
        Ok(figures)
    }
}

async fn read(service: &Service, since: Option<DateTime<Utc>>) -> Result<Figures, StoreError> {
    let mut statistics = Statistics::since(since);
    let mut pictures = Pictures::default();
    each_in_store(service.store(), &FactFilter::All, &mut 0, |entry| {
        statistics.take(&entry);
        pictures.take(&entry, since);
    })
    .await?;
    Ok(Figures {
        report: statistics.report(service.prices()),
        days: pictures.days(),
        models: pictures.models(service),
    })
}

/// Collects the data of the charts.
#[derive(Default)]
struct Pictures {
    begun: HashMap<RunId, DateTime<Utc>>,
    ended: BTreeMap<NaiveDate, (Day, Vec<i64>)>,
    used: BTreeMap<(String, String), Usage>,
}

impl Pictures {
    fn take(&mut self, entry: &Entry, since: Option<DateTime<Utc>>) {
        let is_in_period = since.is_none_or(|since| entry.at >= since);
        if let Fact::ModelCalled {
            input,
            output,
            cached,
            cache_written,
            model,
            role,
            ..
        } = &entry.fact
            && is_in_period
        {
            let used = self.used.entry((model.clone(), role.clone())).or_default();
            *used += Usage {
                input: *input,
                output: *output,
                cached: *cached,
                cache_written: cache_written.unwrap_or_default(),
            };
        }
        let Some(run) = entry.subject.run else { return };
        match &entry.fact {
            Fact::Claimed { .. } => {
                self.begun.entry(run).or_insert(entry.at);
            }
            Fact::StageChanged { to, .. } if to.is_final() => {
                let begun = self.begun.remove(&run);
                if !is_in_period {
                    return;
                }
                let (day, durations) = self.ended.entry(entry.at.date_naive()).or_default();
                match to.to_string().as_str() {
                    "done" => day.done += 1,
                    "failed" => day.failed += 1,
                    _ => day.stopped += 1,
                }
                durations.extend(begun.map(|begun| (entry.at - begun).num_seconds().max(0)));
            }
            _ => {}
        }
    }

    fn days(&mut self) -> Vec<Day> {
        let days = std::mem::take(&mut self.ended).into_iter();
        let days = days.map(|(date, (mut day, mut durations))| {
            durations.sort_unstable();
            day.date = date.to_string();
            day.p50_seconds = at_percent(&durations, 50);
            day.p95_seconds = at_percent(&durations, 95);
            day
        });
        days.collect()
    }

    fn models(&self, service: &Service) -> Vec<ModelCost> {
        let models = self.used.iter().map(|((model, role), usage)| ModelCost {
            model: model.clone(),
            role: role.clone(),
            input: usage.input,
            output: usage.output,
            cost_usd: service.prices().cost([(model.as_str(), usage)]),
        });
        models.collect()
    }
}

/// Returns the value below which so many of a hundred are.
fn at_percent(sorted: &[i64], percent: usize) -> Option<i64> {
    let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(place).copied()
}
