//! Looks after the runs that wait for people.

use std::sync::Arc;
use std::time::{Duration, Instant};

use chrono::Utc;

use super::Service;
use crate::agent::run::Run;
use crate::agent::waiting::{self, Attended};
use crate::store::StoreError;
use crate::task::command::Command;
use crate::task::id::{RunId, TaskId};

/// Long enough for a look at the forge, a push and a comment.
const LEASE: Duration = Duration::from_mins(5);

/// A round of looks ends after the one that takes it beyond this.
const LONGEST_ROUND: Duration = Duration::from_mins(1);

/// What became of a command from the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Told {
    /// There is nobody to tell: the task has no unfinished run.
    NoRun,
    /// A worker has the run in hand and hears it.
    Worker(RunId),
    /// Nobody worked on it, so it took effect here and now.
    Here(Attended),
}

impl Service {
    /// Looks once after every run that is set aside or put back, and rings for those that go on.
    pub async fn attend_all(&self) -> Result<(), StoreError> {
        let store = &self.workshop.store;
        let begun = Instant::now();
        let mut waiting = store.set_aside().await?;
        waiting.extend(store.parked(Utc::now()).await?);
        // A round may end before its last run, so that it must not always begin with the same one.
        let now = usize::try_from(Utc::now().timestamp_subsec_micros()).unwrap_or_default();
        let first = now % waiting.len().max(1);
        waiting.rotate_left(first);
        for run in waiting {
            // What is put back may be so because the forge does not answer; the others are looked
            // after next time.
            if self.stop.asked.is_cancelled() || begun.elapsed() > LONGEST_ROUND {
                return Ok(());
            }
            self.attend(run).await?;
        }
        Ok(())
    }

    /// Gives `command` to the unfinished run of `task`: through the store to the worker that has
    /// it, else at once.
    pub async fn tell(&self, task: &TaskId, command: &Command) -> Result<Told, StoreError> {
        let store = &self.workshop.store;
        let Some(run) = store.unfinished_of(task).await? else {
            return Ok(Told::NoRun);
        };
        store.ask(run.id, &command.to_string()).await?;
        Ok(match self.attend(run.id).await? {
            Some(attended) => Told::Here(attended),
            None => Told::Worker(run.id),
        })
    }

    /// Looks after one run; `None` where a worker has it in hand.
    async fn attend(&self, run: RunId) -> Result<Option<Attended>, StoreError> {
        let Some((lease, stored)) = self.workshop.store.claim_run(run, LEASE).await? else {
            return Ok(None);
        };
        let Some(thread) = self.forges.thread(&stored.task) else {
            tracing::error!(task = %stored.task, "its forge is not among task_sources any more; the run waits");
            self.workshop.store.release(&lease, stored.not_before).await?;
            return Ok(Some(Attended::Stays));
        };
        let run = Run::new(Arc::clone(&self.workshop), Arc::new(lease), &stored, thread, &self.stop);
        // Boxed: it is rare, and its large future would be carried by everything that waits for it.
        let attended = Box::pin(waiting::attend(run, stored.not_before)).await;
        if attended == Attended::GoesOn {
            self.bell.ring();
        }
        Ok(Some(attended))
    }
}
