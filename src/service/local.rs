//! Works on a task from the command line, through the same consumer as all others.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, anyhow};
use uuid::Uuid;

use super::Service;
use crate::agent::record::outcome::RunOutcome;
use crate::agent::record::redaction;
use crate::agent::record::sections::RequestRecord;
use crate::agent::record::{LocalTask, Record};
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::text::local_report;
use crate::repository::mirror::Mirror;
use crate::secret::Clean;
use crate::store::Admission;
use crate::task::id::{RunId, TaskId};

const LEASE: Duration = Duration::from_mins(1);
/// Maximum size of a difference that is shown; a larger one is kept in a file.
const LONGEST_DIFF: u64 = 16 * 1024 * 1024;

/// The outcome of a local task, and what it changed.
pub struct LocalOutcome {
    pub ending: RunOutcome,
    /// The patch; empty if nothing changed.
    pub diff: Clean,
    /// Report for people: what was changed, how it was verified, what it cost.
    pub report: Clean,
}

/// A difference for display.
struct Shown {
    text: Clean,
    /// The file with the exact patch, if `text` differs from it.
    exact: Option<PathBuf>,
}

impl Service {
    /// Works on `local` now, in this process.
    pub async fn work_on_local(&self, local: LocalTask, thread: ReportTarget) -> anyhow::Result<LocalOutcome> {
        self.recover().await?;
        let task = TaskId::Local { id: Uuid::now_v7() };
        let first_line = local.text.trim().lines().next().unwrap_or_default();
        let title: String = self.clean(first_line).as_str().chars().take(72).collect();
        let record = Record {
            request: RequestRecord {
                title: title.clone(),
                local: Some(local),
                ..RequestRecord::default()
            },
            ..Record::default()
        };
        let record = record.to_saved()?;
        let (Admission::New(run) | Admission::Known(run)) = self.services.store.admit(&task, &title, &record).await?;
        let claimed = self.services.store.claim_run(run, LEASE).await?;
        let (lease, stored) = claimed.ok_or_else(|| anyhow!("the task was taken by another worker"))?;
        let ending = self.work_on(lease, stored, thread).await;
        self.outcome(run, ending).await
    }

    async fn outcome(&self, run: RunId, ending: RunOutcome) -> anyhow::Result<LocalOutcome> {
        let stored = self.services.store.run(run).await?;
        let stored = stored.ok_or_else(|| anyhow!("the run is not in the store any more"))?;
        let record: Record = Record::read(&stored)?;
        let settings = &self.services.settings;
        let mirror = Mirror::local(&settings.repository, &settings.state_dir, &run.to_string()).await?;
        let (mut changed, mut kept) = (Vec::new(), None);
        let mut diff = self.clean("");
        if let (Some(base), Some(head)) = (&record.planned.base, &record.delivered.head)
            && base.commit != *head
        {
            changed = mirror.changed(&base.commit, head).await?;
            let (patch, length) = mirror.patch(&base.commit, head).await?;
            let shown = self.shown(&patch, length).await?;
            let is_applied = matches!(ending, RunOutcome::Done { .. })
                && record.request.local.as_ref().is_some_and(|local| !local.dry_run);
            // A failure always keeps the patch: its text may name the file.
            kept = match ending {
                RunOutcome::Failed(_) => Some(patch.clone()),
                _ => shown.exact.filter(|_| !is_applied),
            };
            if kept.is_none() {
                tokio::fs::remove_file(&patch).await.context("removing the patch")?;
            }
            diff = shown.text;
        }
        mirror.discard().await?;
        let report = local_report::local(&record, settings, &ending, &changed, kept.as_deref());
        Ok(LocalOutcome {
            ending,
            diff,
            report: self.clean(&report),
        })
    }

    /// Reads a patch for display: redacted, as text, and only if it is not too long.
    async fn shown(&self, patch: &Path, length: u64) -> anyhow::Result<Shown> {
        if length > LONGEST_DIFF {
            return Ok(Shown {
                text: self.clean(""),
                exact: Some(patch.to_owned()),
            });
        }
        let bytes = tokio::fs::read(patch).await.context("reading the patch")?;
        let text = self.clean(&String::from_utf8_lossy(&bytes));
        let exact = (text.as_str().as_bytes() != bytes).then(|| patch.to_owned());
        Ok(Shown { text, exact })
    }

    /// Returns `text` with secrets redacted.
    pub fn clean(&self, text: &str) -> Clean {
        self.services.redactor.clean(text)
    }

    /// Returns `text` without secrets, cut in the middle to `max_bytes` at most.
    pub fn clean_cut(&self, text: &str, max_bytes: usize) -> String {
        redaction::clean_cut(&self.services.redactor, text, max_bytes)
    }
}
