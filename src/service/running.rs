//! The loops of the service: search, attend to waiting runs, clean up, fill the pool, work.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Service;
use super::bell::BREATH;
use super::consumer::Outcome;
use super::producer::Occasion;
use crate::agent::record::stop::Stop;
use crate::secret::Clean;

/// Interval between searches for containers that were left over.
const SWEEP_EVERY: Duration = Duration::from_mins(10);

/// The parts of the work that a process takes on.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// Search the forges for labelled items.
    pub produces: bool,
    /// Work on admitted runs.
    pub consumes: bool,
}

/// Gets what went wrong in a search of the forges, for people.
pub type Report<'a> = &'a (dyn Fn(Clean) + Send + Sync);

/// The result of one cycle.
pub struct Cycle {
    /// How the runs ended that were worked on, and those that ended without that.
    pub outcomes: Vec<Outcome>,
    /// Whether a search of the forges failed in part.
    pub has_faults: bool,
}

impl Service {
    /// Does `work` until `shutdown` asks to stop. Call [`Self::recover`] first.
    pub async fn run(self: &Arc<Self>, work: Work, shutdown: &Stop, report: Report<'_>) {
        let pause = Duration::from_secs(self.config.producer.interval_seconds);
        let producing = async {
            if work.produces {
                let search = async |was_rung: bool| {
                    let occasion = if was_rung { Occasion::Asked } else { Occasion::Pause };
                    self.search(report, occasion).await;
                };
                self.every(pause, shutdown, search).await;
            }
        };
        let consuming = async {
            if work.consumes {
                let attend = async |_: bool| {
                    self.attend_or_log().await;
                };
                let show_ends = async |_: bool| {
                    self.show_ends_or_log().await;
                };
                tokio::join!(
                    Box::pin(self.every(pause, shutdown, attend)),
                    // Apart: to bring the work of a run that has ended may take long.
                    Box::pin(self.every(pause, shutdown, show_ends)),
                    self.keep_warm(),
                    self.hear_the_store(shutdown),
                    self.work_until_stopped(),
                );
            }
        };
        self.is_at_work.store(true, Ordering::Relaxed);
        tokio::join!(
            producing,
            consuming,
            self.clean_up_again_and_again(work, pause, shutdown)
        );
        self.is_at_work.store(false, Ordering::Relaxed);
    }

    /// Wakes consumers when the store tells that there may be work, whichever machine made it.
    async fn hear_the_store(&self, shutdown: &Stop) {
        let Some(mut rung) = self.services.store.rung() else {
            return;
        };
        loop {
            tokio::select! {
                heard = rung.changed() => if heard.is_err() {
                    return;
                },
                () = shutdown.asked.cancelled() => return,
            }
            for _ in 0..self.config.consumers {
                self.wake_ups.wake_one();
            }
        }
    }

    /// Searches once, works until nothing is left, and applies retention: one cycle for cron. Call
    /// [`Self::recover`] first.
    pub async fn run_once(self: &Arc<Self>, report: Report<'_>) -> Cycle {
        let has_faults = self.search(report, Occasion::Asked).await;
        let mut outcomes = self.attend_or_log().await;
        outcomes.extend(self.work_until_idle().await);
        // Only those that nobody claims: of runs that waited for people, and during a pause of all.
        outcomes.extend(self.show_ends_or_log().await);
        Box::pin(self.keep_retention()).await;
        Cycle { outcomes, has_faults }
    }

    /// Searches all forges once and reports what went wrong; returns whether anything did.
    async fn search(&self, report: Report<'_>, occasion: Occasion) -> bool {
        let result = self.produce(occasion).await;
        for fault in &result.faults {
            report(self.clean(fault));
        }
        !result.faults.is_empty()
    }

    /// Attends to the runs that wait for people, and returns those that ended; a failure is logged.
    async fn attend_or_log(&self) -> Vec<Outcome> {
        let mut ended = Vec::new();
        if let Err(error) = self.attend_all(&mut ended).await {
            tracing::error!("the runs that wait for people could not be looked after: {error}");
        }
        ended
    }

    /// Shows the ends that are due to be shown, and returns them; a failure is logged.
    async fn show_ends_or_log(&self) -> Vec<Outcome> {
        let mut ended = Vec::new();
        if let Err(error) = self.show_due_ends(&mut ended).await {
            tracing::error!("the ends that could not be shown before could not be looked for: {error}");
        }
        ended
    }

    /// Applies retention and removes left-over containers every [`SWEEP_EVERY`], and sooner after a
    /// removal failed. A process that works on no runs leaves containers to those that do.
    async fn clean_up_again_and_again(&self, work: Work, pause: Duration, shutdown: &Stop) {
        let mut swept_at = Instant::now();
        loop {
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = shutdown.asked.cancelled() => return,
            }
            if swept_at.elapsed() < SWEEP_EVERY && !self.has_leftovers() {
                continue;
            }
            swept_at = Instant::now();
            Box::pin(self.keep_retention()).await;
            if work.consumes
                && let Err(error) = Box::pin(self.sweep()).await
            {
                tracing::error!("old containers could not be looked for: {error}");
            }
        }
    }

    /// Does `round` at once, then at intervals of `pause` and whenever the bell rings, until
    /// `shutdown` asks to stop. The round is told whether it rang.
    async fn every(&self, pause: Duration, shutdown: &Stop, mut round: impl AsyncFnMut(bool)) {
        let mut ear = self.bell.ear();
        let mut was_rung = false;
        loop {
            let begun = Instant::now();
            round(was_rung).await;
            // From the beginning of the round, so that a long one does not make the next one late.
            let next = begun + self.bell.pause(pause, was_rung);
            was_rung = tokio::select! {
                () = tokio::time::sleep_until(next.into()) => false,
                // It cannot be closed: this holds the other end.
                _ = ear.changed() => true,
                () = shutdown.asked.cancelled() => return,
            };
            if was_rung {
                // Several deliveries of a moment are one look.
                tokio::select! {
                    () = tokio::time::sleep_until((begun + BREATH).into()) => {}
                    () = shutdown.asked.cancelled() => return,
                }
                ear.mark_unchanged();
            }
        }
    }
}
