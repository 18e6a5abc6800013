//! The consumers: each claims a run, works on it, and releases it.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use chrono::{TimeDelta, Utc};
use tokio::task::JoinSet;
use tokio_util::task::AbortOnDropHandle;

use super::Service;
use crate::agent::advance::advance;
use crate::agent::record::outcome::RunOutcome;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::run::Run;
use crate::journal::fact::Fact;
use crate::store::{Lease, Run as StoredRun, Store, StoreError};
use crate::task::id::TaskId;

/// Duration of a lease without a heartbeat.
const LEASE: Duration = Duration::from_mins(1);
/// Interval at which an idle consumer looks without being woken: postponed runs become due by the
/// clock.
const LOOK_EVERY: Duration = Duration::from_secs(15);
/// The same where the store wakes consumers, also for runs that become due.
const LOOK_EVERY_UNASKED: Duration = Duration::from_mins(1);

/// The outcome of a consumer's work on a run.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// `None` if no run could be claimed.
    pub task: Option<TaskId>,
    pub ending: RunOutcome,
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.task {
            Some(task) => write!(formatter, "{task}: {}", self.ending.with_reason()),
            None => write!(formatter, "the next run: {}", self.ending.with_reason()),
        }
    }
}

impl Service {
    /// Runs all consumers until no run is due; returns how the runs ended.
    pub async fn work_until_idle(self: &Arc<Self>) -> Vec<Outcome> {
        let mut consumers = JoinSet::new();
        for _ in 0..self.config.consumers {
            let service = Arc::clone(self);
            consumers.spawn(async move {
                let mut outcomes = Vec::new();
                while let Some(outcome) = service.work_on_next().await {
                    let goes_on = !must_pause(&outcome.ending);
                    outcomes.push(outcome);
                    if !goes_on {
                        break;
                    }
                }
                outcomes
            });
        }
        consumers.join_all().await.into_iter().flatten().collect()
    }

    /// Runs all consumers until the program is asked to stop.
    pub async fn work_until_stopped(self: &Arc<Self>) {
        let mut consumers = JoinSet::new();
        for _ in 0..self.config.consumers {
            let service = Arc::clone(self);
            consumers.spawn(async move {
                while !service.stop.asked.is_cancelled() {
                    match service.work_on_next().await {
                        Some(outcome) if must_pause(&outcome.ending) => service.pause(std::future::pending()).await,
                        Some(_) => {}
                        None => service.pause(service.wake_ups.woken()).await,
                    }
                }
            });
        }
        consumers.join_all().await;
    }

    /// Waits until `woken` resolves, it is time to look, or the program is asked to stop.
    async fn pause(&self, woken: impl Future<Output = ()>) {
        let is_told = self.services.store.rung().is_some();
        let time = if is_told { LOOK_EVERY_UNASKED } else { LOOK_EVERY };
        tokio::select! {
            () = woken => {}
            () = tokio::time::sleep(time) => {}
            () = self.stop.asked.cancelled() => {}
        }
    }

    /// Claims the next due run and works on it; `None` if there is none.
    async fn work_on_next(&self) -> Option<Outcome> {
        let is_paused = self.services.store.is_paused().await.unwrap_or_else(|error| {
            tracing::error!("it is not known whether all runs are paused, so none is claimed: {error}");
            true
        });
        if self.stop.asked.is_cancelled() || is_paused {
            return None;
        }
        let claimed = match self.services.store.claim(LEASE).await {
            Ok(claimed) => claimed?,
            Err(error) => {
                tracing::error!("no run could be claimed: {error}");
                let (task, ending) = (None, RunOutcome::Unsaved);
                return Some(Outcome { task, ending });
            }
        };
        let (lease, stored) = claimed;
        let task = Some(stored.task.clone());
        let Some(thread) = self.forges.thread(&stored.task) else {
            let until = Utc::now() + TimeDelta::hours(1);
            tracing::error!(task = %stored.task, "its forge is not among task_sources any more; the run waits");
            self.services.release(&lease, Some(until)).await;
            let reason = "its forge is not among task_sources any more".to_owned();
            let ending = RunOutcome::Postponed { until, reason };
            return Some(Outcome { task, ending });
        };
        let ending = self.work_on(lease, stored, thread).await;
        Some(Outcome { task, ending })
    }

    /// Works on a claimed run, and extends its lease meanwhile.
    pub async fn work_on(&self, lease: Lease, stored: StoredRun, thread: ReportTarget) -> RunOutcome {
        let lease = Arc::new(lease);
        let is_shared = self.services.store.is_shared();
        let machine = is_shared.then(machine).flatten();
        let state = stored.state.to_string();
        self.record(&lease.task, Some(lease.run), Fact::Claimed { machine, state });
        let ending = tokio::select! {
            ending = self.advance(&lease, stored, thread) => ending,
            // The work is dropped where it is: another worker may hold the run by now.
            ending = beat(&self.services.store, &lease) => {
                tracing::error!(task = %lease.task, "the lease was lost; the run is {ending}");
                ending
            }
        };
        let put_down = Fact::PutDown {
            ending: ending.to_string(),
        };
        self.record(&lease.task, Some(lease.run), put_down);
        ending
    }

    /// Advances the run in a task of its own, so that a panic ends one run and not the service.
    async fn advance(&self, lease: &Arc<Lease>, stored: StoredRun, thread: ReportTarget) -> RunOutcome {
        let services = || Arc::clone(&self.services);
        let run = Run::new(services(), Arc::clone(lease), &stored, thread.clone(), &self.stop);
        let panic = match apart(run).await {
            Ok(ending) => return ending,
            Err(panic) => panic,
        };
        tracing::error!(task = %lease.task, "the run broke off by a fault of this program: {panic}");
        let saved = self
            .services
            .store
            .run(lease.run)
            .await
            .ok()
            .flatten()
            .unwrap_or(stored);
        let run = Run::broken(services(), Arc::clone(lease), &saved, thread, &self.stop);
        match apart(run).await {
            Ok(ending) => ending,
            Err(panic) => {
                let until = Utc::now() + TimeDelta::minutes(10);
                tracing::error!(task = %lease.task, "and it could not be ended: {panic}");
                self.services.release(lease, Some(until)).await;
                let reason = "a fault of this program broke it off, which the log has".to_owned();
                RunOutcome::Postponed { until, reason }
            }
        }
    }
}

/// Returns the name of this machine.
fn machine() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// Returns true if claiming another run at once would be useless.
fn must_pause(ending: &RunOutcome) -> bool {
    matches!(ending, RunOutcome::Unsaved)
}

/// Advances the run in a separate task, which is aborted with the caller's.
async fn apart(run: Run) -> Result<RunOutcome, tokio::task::JoinError> {
    AbortOnDropHandle::new(tokio::spawn(advance(run))).await
}

/// Extends the lease at intervals. Returns the run's ending when the lease is lost, or has run out
/// because no extension succeeded.
pub(super) async fn beat(store: &Store, lease: &Lease) -> RunOutcome {
    keep(&lease.task, LEASE, move || store.heartbeat(lease, LEASE)).await
}

/// Extends a lease by `time` again and again, which lasts for as long from now on. Where the store
/// gives no good answer, it ends with that time: later, another worker may have the run.
async fn keep<F>(task: &TaskId, time: Duration, extend: impl Fn() -> F) -> RunOutcome
where
    F: Future<Output = Result<(), StoreError>>,
{
    let left = |extended_at: Moment| time.saturating_sub(extended_at.elapsed());
    let (mut extended_at, mut has_failed) = (Moment::now(), false);
    loop {
        let pause = if has_failed { time / 12 } else { time / 3 };
        tokio::time::sleep(pause.min(left(extended_at))).await;
        let rest = left(extended_at);
        // Where the machine has slept beyond its end, nobody may have taken the run meanwhile.
        let limit = if rest.is_zero() && !has_failed { time / 3 } else { rest };
        match tokio::time::timeout(limit, extend()).await {
            Ok(Ok(())) => (extended_at, has_failed) = (Moment::now(), false),
            Ok(Err(StoreError::LeaseLost(_))) => return RunOutcome::Disowned,
            Ok(Err(error)) if !left(extended_at).is_zero() => {
                tracing::warn!(%task, "the heartbeat failed: {error}");
                has_failed = true;
            }
            Ok(Err(_)) | Err(_) => return RunOutcome::Unsaved,
        }
    }
}

/// A moment on two clocks: `Instant` stands still while the machine sleeps, so that a lease which
/// ran out meanwhile would seem to hold; the other clock goes on, and can be set.
#[derive(Debug, Clone, Copy)]
struct Moment {
    instant: Instant,
    clock: SystemTime,
}

impl Moment {
    fn now() -> Self {
        Self {
            instant: Instant::now(),
            clock: SystemTime::now(),
        }
    }

    /// Returns how long ago it was, by the clock that says more. A clock that was set back says
    /// nothing.
    fn elapsed(self) -> Duration {
        self.instant.elapsed().max(self.clock.elapsed().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::task::id::RunId;

    const PATIENCE: Duration = Duration::from_secs(30);
    const SHORT: Duration = Duration::from_millis(60);

    async fn kept<F>(time: Duration, extend: impl Fn() -> F) -> (RunOutcome, Duration)
    where
        F: Future<Output = Result<(), StoreError>>,
    {
        let task = "github:a/b#1".parse().unwrap();
        let begun = Instant::now();
        let ending = tokio::time::timeout(PATIENCE, keep(&task, time, extend)).await;
        (ending.unwrap(), begun.elapsed())
    }

    fn away() -> StoreError {
        StoreError::Away {
            store: "s".to_owned(),
            reason: "r".to_owned(),
        }
    }

    #[tokio::test]
    async fn a_run_is_put_down_when_its_lease_has_run_out_however_the_store_fails() {
        let (ending, time) = kept(SHORT, std::future::pending).await;
        assert!(
            ending == RunOutcome::Unsaved && time >= SHORT,
            "{ending:?} after {time:?}"
        );
        // So long that a busy machine leaves time to ask again.
        let lease = Duration::from_secs(1);
        let asked = Cell::new(0);
        let (ending, time) = kept(lease, || {
            asked.set(asked.get() + 1);
            std::future::ready(Err(away()))
        })
        .await;
        assert!(
            ending == RunOutcome::Unsaved && time >= lease,
            "{ending:?} after {time:?}"
        );
        assert!(asked.get() > 1, "it is soon asked again");
    }

    #[tokio::test]
    async fn a_lease_is_extended_until_another_worker_has_it() {
        let answers = Cell::new(3);
        let (ending, _) = kept(SHORT, || {
            answers.set(answers.get() - 1);
            let is_lost = answers.get() == 0;
            let lost = || Err(StoreError::LeaseLost(RunId::new()));
            std::future::ready(if is_lost { lost() } else { Ok(()) })
        })
        .await;
        assert_eq!((ending, answers.get()), (RunOutcome::Disowned, 0));
    }

    #[test]
    fn a_moment_before_a_sleep_is_long_ago() {
        let now = Moment::now();
        assert!(now.elapsed() < LEASE);
        let before_a_sleep = Moment {
            clock: now.clock - 2 * LEASE,
            ..now
        };
        assert!(before_a_sleep.elapsed() >= 2 * LEASE);
        let before_it_was_set_back = Moment {
            clock: now.clock + 2 * LEASE,
            ..now
        };
        assert!(before_it_was_set_back.elapsed() < LEASE);
    }
}
