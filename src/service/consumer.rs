//! The consumers: claim a run, work on it, give it back.

use std::sync::Arc;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use tokio::task::JoinSet;

use super::Service;
use crate::agent::run::{Ending, Run};
use crate::agent::thread::Thread;
use crate::journal::fact::{Fact, Subject};
use crate::store::{Lease, Run as StoredRun, Store, StoreError};

/// How long a lease lasts without a heartbeat.
const LEASE: Duration = Duration::from_mins(1);
const HEARTBEAT: Duration = Duration::from_secs(20);
/// How often an idle consumer looks without having been rung: runs that were put back become due by the clock.
const LOOK_EVERY: Duration = Duration::from_secs(15);

impl Service {
    /// Works with all consumers until nothing is left that is due; returns how the runs ended.
    pub async fn work_until_idle(self: &Arc<Self>) -> Vec<Ending> {
        let mut consumers = JoinSet::new();
        for _ in 0..self.config.consumers {
            let service = Arc::clone(self);
            consumers.spawn(async move {
                let mut endings = Vec::new();
                while let Some(ending) = service.work_on_next().await {
                    endings.push(ending);
                }
                endings
            });
        }
        consumers.join_all().await.into_iter().flatten().collect()
    }

    /// Works with all consumers until the program is asked to stop.
    pub async fn work_until_stopped(self: &Arc<Self>) {
        let mut consumers = JoinSet::new();
        for _ in 0..self.config.consumers {
            let service = Arc::clone(self);
            consumers.spawn(async move {
                while !service.stop.asked.is_cancelled() {
                    if service.work_on_next().await.is_some() {
                        continue;
                    }
                    tokio::select! {
                        () = service.bell.heard() => {}
                        () = tokio::time::sleep(LOOK_EVERY) => {}
                        () = service.stop.asked.cancelled() => {}
                    }
                }
            });
        }
        consumers.join_all().await;
    }

    /// Claims the next run that is due and works on it; `None` when there is none.
    pub async fn work_on_next(&self) -> Option<Ending> {
        if self.stop.asked.is_cancelled() {
            return None;
        }
        let claimed = match self.workshop.store.claim(LEASE).await {
            Ok(claimed) => claimed?,
            Err(error) => {
                tracing::error!("no run could be claimed: {error}");
                return None;
            }
        };
        let (lease, stored) = claimed;
        let Some(thread) = self.forges.thread(&stored.task) else {
            let until = Utc::now() + TimeDelta::hours(1);
            tracing::error!(task = %stored.task, "its forge is not among task_sources any more; the run waits");
            self.release(&lease, Some(until)).await;
            return Some(Ending::Postponed(until));
        };
        Some(self.work_on(lease, stored, thread).await)
    }

    /// Works on a claimed run while its lease is kept alive.
    pub async fn work_on(&self, lease: Lease, stored: StoredRun, thread: Thread) -> Ending {
        let lease = Arc::new(lease);
        let subject = Subject {
            task: Some(lease.task.clone()),
            run: Some(lease.run),
        };
        self.workshop.journal.record(&subject, Fact::Claimed);
        let heart = tokio::spawn(beat(self.workshop.store.clone(), Arc::clone(&lease)));
        let run = Run::new(
            Arc::clone(&self.workshop),
            Arc::clone(&lease),
            &stored,
            thread,
            self.stop.clone(),
        );
        // A task of its own, so that a panic ends one run and not the service.
        let ending = match tokio::spawn(run.advance()).await {
            Ok(ending) => ending,
            Err(panic) => {
                let until = Utc::now() + TimeDelta::minutes(10);
                tracing::error!(task = %lease.task, "the run broke off by a fault of this program: {panic}");
                self.release(&lease, Some(until)).await;
                Ending::Postponed(until)
            }
        };
        heart.abort();
        self.workshop.journal.record(
            &subject,
            Fact::PutDown {
                ending: ending.to_string(),
            },
        );
        ending
    }

    async fn release(&self, lease: &Lease, until: Option<chrono::DateTime<Utc>>) {
        if let Err(error) = self.workshop.store.release(lease, until).await {
            tracing::error!(task = %lease.task, "the lease could not be given back, it runs out by itself: {error}");
        }
    }
}

/// Extends the lease until it is lost; the run notices a loss itself at its next save.
async fn beat(store: Store, lease: Arc<Lease>) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        match store.heartbeat(&lease, LEASE).await {
            Ok(()) => {}
            Err(StoreError::LeaseLost(_)) => return,
            Err(error) => tracing::warn!(task = %lease.task, "the heartbeat failed: {error}"),
        }
    }
}
