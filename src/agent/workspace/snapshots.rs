//! The work is kept in the mirror every few turns and before the checks, so that a container that
//! dies by itself costs a few turns and not all of them.
//!
//! It happens while the model thinks: a snapshot takes a few hundred milliseconds, and the model
//! takes longer. The next tool call waits for it, so that a snapshot never sees half a change.

use crate::agent::run::Run;
use crate::agent::workspace::confidentiality;
use crate::agent::workspace::open;
use std::sync::Arc;
use std::time::Duration;

use crate::agent::record::interruption::Interruption;
use crate::repository::CommitId;
use crate::workspace::project::Workspace;

/// After how many turns with tool calls the work is kept.
const EVERY: u32 = 10;

/// Longest time for one snapshot; a project that takes longer is kept when the run is put down.
const PATIENCE: Duration = Duration::from_mins(1);

/// Counts a turn with tool calls, and begins a snapshot when it is time.
pub(crate) fn snapshot_if_due(run: &mut Run) {
    let task = run.claim.lease.task.clone();
    let Some(opened) = &mut run.workspace.open else { return };
    opened.keeping.turns += 1;
    if opened.keeping.turns < EVERY || opened.keeping.running.is_some() {
        return;
    }
    opened.keeping.turns = 0;
    let workspace = Arc::clone(&opened.workspace);
    opened.keeping.running = Some(tokio::spawn(async move {
        // A lost container is noticed by the next tool call as well.
        if let Err(interruption) = keep(&workspace).await {
            tracing::warn!(%task, "the work could not be kept: {interruption:?}");
        }
    }));
}

/// Waits for the snapshot that is being made, if one is.
pub(crate) async fn finish_snapshot(run: &mut Run) {
    if let Some(opened) = &mut run.workspace.open {
        opened.keeping.finish().await;
    }
}

/// Has everything committed and judged, and saves what came of it. What is uncommitted goes
/// under the title of the task.
pub(crate) async fn commit_result(run: &mut Run) -> Result<CommitId, Interruption> {
    // A snapshot that is being made moves the branch back for a moment.
    finish_snapshot(run).await;
    let (message, files) = (run.claim.record.title.clone(), run.claim.record.rules.files.clone());
    let workspace = Arc::clone(&open::open_workspace(run).await?.workspace);
    let accepted = workspace.take_back(&message, &files).await?.head;
    let head = confidentiality::shown_as(&run.claim, workspace.mirror(), accepted).await?;
    run.claim.record.head = Some(head.clone());
    run.claim.save().await?;
    Ok(head)
}

/// Keeps the work where that is possible.
pub(crate) async fn snapshot_before_checks(run: &mut Run) -> Result<(), Interruption> {
    let task = run.claim.lease.task.clone();
    let opened = open::open_workspace(run).await?;
    opened.keeping.finish().await;
    match keep(&opened.workspace).await {
        Err(lost @ Interruption::WorkspaceLost(_)) => Err(lost),
        Err(interruption) => {
            tracing::warn!(%task, "the work could not be kept: {interruption:?}");
            Ok(())
        }
        Ok(_) => Ok(()),
    }
}

async fn keep(workspace: &Workspace) -> Result<CommitId, Interruption> {
    let too_late = || Interruption::failed(format!("the snapshot took longer than {} s", PATIENCE.as_secs()));
    let kept = tokio::time::timeout(PATIENCE, workspace.keep()).await;
    Ok(kept.map_err(|_| too_late())??)
}
