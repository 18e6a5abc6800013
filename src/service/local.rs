//! A task from the command line, through the same consumer as all others.

use std::time::Duration;

use anyhow::{Context, anyhow};
use uuid::Uuid;

use super::Service;
use crate::agent::record::{LocalTask, Record};
use crate::agent::run::Ending;
use crate::agent::thread::Thread;
use crate::repository::mirror::Mirror;
use crate::secret::Clean;
use crate::store::Admission;
use crate::task::id::TaskId;

const LEASE: Duration = Duration::from_mins(1);
/// Most of a difference that is shown.
const LONGEST_DIFF: usize = 4 * 1024 * 1024;

/// How a local task ended and what it changed.
pub struct LocalOutcome {
    pub ending: Ending,
    /// Unified; empty where nothing changed.
    pub diff: Clean,
}

impl Service {
    /// Works on `local` now, in this process.
    pub async fn work_on_local(&self, local: LocalTask, thread: Thread) -> anyhow::Result<LocalOutcome> {
        self.recover().await?;
        let task = TaskId::Local { id: Uuid::now_v7() };
        let title = local
            .text
            .lines()
            .next()
            .unwrap_or_default()
            .chars()
            .take(72)
            .collect::<String>();
        let record = Record {
            title: title.clone(),
            local: Some(local),
            ..Record::default()
        };
        let admission = self
            .workshop
            .store
            .admit(&task, &title, &serde_json::to_value(record)?)
            .await?;
        let (Admission::New(run) | Admission::Known(run)) = admission;
        let (lease, stored) = self
            .workshop
            .store
            .claim_run(run, LEASE)
            .await?
            .ok_or_else(|| anyhow!("the task was taken by another worker"))?;
        let ending = self.work_on(lease, stored, thread).await;
        let stored = self
            .workshop
            .store
            .run(run)
            .await?
            .ok_or_else(|| anyhow!("the run is not in the store any more"))?;
        let record: Record = serde_json::from_value(stored.record).context("reading the run's record")?;
        let settings = &self.workshop.settings;
        let mirror = Mirror::local(&settings.repository, &settings.state_dir, &run.to_string()).await?;
        let diff = match (&record.base, &record.head) {
            (Some(base), Some(head)) => mirror.diff(&base.commit, head, LONGEST_DIFF).await?.0,
            _ => String::new(),
        };
        mirror.discard().await?;
        Ok(LocalOutcome {
            ending,
            diff: self.clean(&diff),
        })
    }

    /// Returns `text` without secrets.
    pub fn clean(&self, text: &str) -> Clean {
        self.workshop.redactor.clean(text)
    }
}
