//! The work is kept in the mirror every few turns and before the checks, so that a container that
//! dies by itself costs a few turns and not all of them.
//!
//! It happens while the model thinks: a snapshot takes a few hundred milliseconds, and the model
//! takes longer. The next tool call waits for it, so that a snapshot never sees half a change.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::run::Run;
use super::setback::Setback;
use super::workspace::Workspace;
use crate::repository::CommitId;

/// After how many turns with tool calls the work is kept.
const EVERY: u32 = 10;

/// Longest time for one snapshot; a project that takes longer is kept when the run is put down.
const PATIENCE: Duration = Duration::from_mins(1);

/// What became of the work since it was last kept.
#[derive(Default)]
pub struct Keeping {
    turns: u32,
    running: Option<JoinHandle<()>>,
}

impl Keeping {
    /// Waits for the snapshot that is being made, if one is.
    pub async fn finish(&mut self) {
        if let Some(running) = self.running.take() {
            // It says itself what went wrong; a panic leaves the snapshot before.
            let _ = running.await;
        }
    }
}

impl Run {
    /// Counts a turn with tool calls, and begins a snapshot when it is time.
    pub(super) fn keep_now_and_then(&mut self) {
        let task = self.lease.task.clone();
        let Some(desk) = &mut self.desk else { return };
        desk.keeping.turns += 1;
        if desk.keeping.turns < EVERY || desk.keeping.running.is_some() {
            return;
        }
        desk.keeping.turns = 0;
        let workspace = Arc::clone(&desk.workspace);
        desk.keeping.running = Some(tokio::spawn(async move {
            // A lost container is noticed by the next tool call as well.
            if let Err(setback) = keep(&workspace).await {
                tracing::warn!(%task, "the work could not be kept: {setback:?}");
            }
        }));
    }

    /// Waits for the snapshot that is being made, if one is.
    pub(super) async fn finish_keeping(&mut self) {
        if let Some(desk) = &mut self.desk {
            desk.keeping.finish().await;
        }
    }

    /// Has everything committed and judged, and saves what came of it. What is uncommitted goes
    /// under the title of the task.
    pub(super) async fn commit_result(&mut self) -> Result<CommitId, Setback> {
        // A snapshot that is being made moves the branch back for a moment.
        self.finish_keeping().await;
        let (message, files) = (self.record.title.clone(), self.record.rules.files.clone());
        let workspace = Arc::clone(&self.open_desk().await?.workspace);
        let accepted = workspace.take_back(&message, &files).await?.head;
        let head = self.shown_as(workspace.mirror(), accepted).await?;
        self.record.head = Some(head.clone());
        self.save().await?;
        Ok(head)
    }

    /// Keeps the work where that is possible.
    pub(super) async fn keep_before_checks(&mut self) -> Result<(), Setback> {
        let task = self.lease.task.clone();
        let desk = self.open_desk().await?;
        desk.keeping.finish().await;
        match keep(&desk.workspace).await {
            Err(lost @ Setback::WorkspaceLost(_)) => Err(lost),
            Err(setback) => {
                tracing::warn!(%task, "the work could not be kept: {setback:?}");
                Ok(())
            }
            Ok(_) => Ok(()),
        }
    }
}

async fn keep(workspace: &Workspace) -> Result<CommitId, Setback> {
    let too_late = || Setback::failed(format!("the snapshot took longer than {} s", PATIENCE.as_secs()));
    tokio::time::timeout(PATIENCE, workspace.keep())
        .await
        .map_err(|_| too_late())?
}
