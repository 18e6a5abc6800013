//! Attends to runs that wait: delivers what people said to them and resumes or ends them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;

use super::consumer::{Outcome, beat};
use super::{Service, isolated};
use crate::agent::record::Record;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::outcome::RunOutcome;
use crate::agent::run::Run;
use crate::agent::waiting::{self, Visited};
use crate::store::{Run as StoredRun, StoreError};
use crate::task::command::Command;
use crate::task::id::{RunId, TaskId};

/// Duration of a lease until its first heartbeat.
const LEASE: Duration = Duration::from_mins(5);

/// A round over runs ends with the first run after this time.
const LONGEST_ROUND: Duration = Duration::from_mins(1);

/// The outcome of a command to the run of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandOutcome {
    /// The task has no unfinished run, so the command had no effect.
    NoRun,
    /// It was left for the worker that holds the run.
    Worker(RunId),
    /// No worker held the run, so the command took effect at once.
    Here(Visited),
}

/// Returns true if the end of a run was decided, and could not be shown yet.
fn has_ended(run: &StoredRun) -> bool {
    let record = Record::read(run);
    record.is_ok_and(|record| Interruption::of_decided_end(&record).is_some())
}

fn ids(runs: Vec<StoredRun>) -> Vec<RunId> {
    runs.into_iter().map(|run| run.id).collect()
}

/// Rotates `runs`, so that each round begins with another run: a round may end early, and would
/// otherwise never reach the last ones.
fn turned(mut runs: Vec<RunId>, moment: u32) -> Vec<RunId> {
    let first = usize::try_from(moment).unwrap_or_default() % runs.len().max(1);
    runs.rotate_left(first);
    runs
}

impl Service {
    /// Attends to runs that wait for people or are postponed, for about a minute at most, and wakes
    /// consumers for those that continue. Adds those that ended to `ended`. Ends that were decided
    /// before are left to [`Self::show_due_ends`]: to bring the work of one may take long.
    pub async fn attend_all(&self, ended: &mut Vec<Outcome>) -> Result<(), StoreError> {
        let store = &self.services.store;
        let mut waiting = store.set_aside().await?;
        waiting.extend(store.parked(Utc::now()).await?);
        waiting.retain(|run| !has_ended(run));
        self.attend_each(ids(waiting), ended).await
    }

    /// Shows the ends that were decided before and are due to be shown. They wait neither for a
    /// free consumer nor for the end of a pause of all runs. Adds those that were shown to `ended`.
    pub async fn show_due_ends(&self, ended: &mut Vec<Outcome>) -> Result<(), StoreError> {
        let mut decided = self.services.store.due_again(Utc::now()).await?;
        decided.retain(has_ended);
        self.attend_each(ids(decided), ended).await
    }

    async fn attend_each(&self, runs: Vec<RunId>, ended: &mut Vec<Outcome>) -> Result<(), StoreError> {
        let begun = Instant::now();
        for run in turned(runs, Utc::now().timestamp_subsec_micros()) {
            // If the forge does not answer, each run may take long; the rest is left for the next
            // round.
            if self.stop.asked.is_cancelled() || begun.elapsed() > LONGEST_ROUND {
                return Ok(());
            }
            match isolated(self.attend(run)).await {
                Ok(attended) => ended.extend(attended?.and_then(end_of)),
                Err(broken) => tracing::error!(%run, "a run that waits could not be looked after: {broken}"),
            }
        }
        Ok(())
    }

    /// Gives `command` to the unfinished run of `task`: to the worker that holds it, through the
    /// store, else it is executed here. `by` is the name of the person, where it is known.
    pub async fn tell(&self, task: &TaskId, command: &Command, by: Option<&str>) -> Result<CommandOutcome, StoreError> {
        let store = &self.services.store;
        let Some(run) = store.unfinished_of(task).await? else {
            return Ok(CommandOutcome::NoRun);
        };
        store.ask(run.id, &command.to_string(), by).await?;
        Ok(match self.attend(run.id).await? {
            Some((_, attended)) => CommandOutcome::Here(attended),
            None => CommandOutcome::Worker(run.id),
        })
    }

    /// Attends to one run, and extends its lease meanwhile; `None` if a worker holds it. One whose
    /// visit panics is ended, as a consumer ends the run that it works on.
    async fn attend(&self, run: RunId) -> Result<Option<(TaskId, Visited)>, StoreError> {
        let Some((lease, stored)) = self.services.store.claim_run(run, LEASE).await? else {
            return Ok(None);
        };
        let Some(thread) = self.forges.thread(&stored.task) else {
            tracing::error!(task = %stored.task, "its forge is not among task_sources any more; the run waits");
            self.services.store.release(&lease, stored.not_before).await?;
            return Ok(Some((stored.task, Visited::Stays)));
        };
        let task = stored.task.clone();
        let lease = Arc::new(lease);
        let claimed = |stored: &StoredRun| {
            let (services, lease) = (Arc::clone(&self.services), Arc::clone(&lease));
            Run::new(services, lease, stored, thread.clone(), &self.stop)
        };
        // Boxed: its large future is rarely needed, but would be part of every caller's.
        let visiting = Box::pin(async {
            let visited = isolated(Box::pin(waiting::attend(claimed(&stored), stored.not_before))).await;
            match visited {
                Ok(visited) => visited,
                Err(broken) => {
                    tracing::error!(task = %stored.task, "a run that waits could not be looked after: {broken}");
                    let saved = self.services.store.run(run).await.ok().flatten();
                    Box::pin(waiting::end_broken(claimed(saved.as_ref().unwrap_or(&stored)))).await
                }
            }
        });
        let attended = tokio::select! {
            // First, since the lease ends with the visit.
            biased;
            attended = visiting => attended,
            // The visit is dropped where it is: another worker may hold the run by now.
            ending = beat(&self.services.store, &lease) => {
                tracing::error!(%task, "the lease was lost; the run that waits is {ending}");
                return Ok(Some((task, Visited::Ended(ending))));
            }
        };
        if attended == Visited::GoesOn {
            self.wake_ups.wake_one();
        }
        Ok(Some((task, attended)))
    }
}

/// Returns the end of a run that ended for good when it was attended to.
fn end_of((task, attended): (TaskId, Visited)) -> Option<Outcome> {
    match attended {
        Visited::Ended(ending @ (RunOutcome::Done { .. } | RunOutcome::Stopped | RunOutcome::Failed(_))) => {
            let task = Some(task);
            Some(Outcome { task, ending })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_is_the_first_of_some_rounds_and_in_all_of_them() {
        let runs = [RunId::new(), RunId::new(), RunId::new()];
        let rounds: Vec<_> = (0..6).map(|moment| turned(runs.into(), moment)).collect();
        let firsts: Vec<_> = rounds.iter().map(|round| round[0]).collect();
        assert_eq!(firsts, [runs, runs].concat());
        assert!(rounds.iter().all(|round| runs.iter().all(|run| round.contains(run))));
        assert_eq!(turned(Vec::new(), 7), []);
    }
}
