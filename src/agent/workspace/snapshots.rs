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

use crate::agent::record::interruption::Setback;
use crate::repository::CommitId;
use crate::workspace::project::Workspace;

/// After how many turns with tool calls the work is kept.
const EVERY: u32 = 10;

/// Longest time for one snapshot; a project that takes longer is kept when the run is put down.
const PATIENCE: Duration = Duration::from_mins(1);

/// Counts a turn with tool calls, and begins a snapshot when it is time.
pub(crate) fn keep_now_and_then(run: &mut Run) {
    let task = run.claim.lease.task.clone();
    let Some(desk) = &mut run.workspace.desk else { return };
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
pub(crate) async fn finish_keeping(run: &mut Run) {
    if let Some(desk) = &mut run.workspace.desk {
        desk.keeping.finish().await;
    }
}

/// Has everything committed and judged, and saves what came of it. What is uncommitted goes
/// under the title of the task.
pub(crate) async fn commit_result(run: &mut Run) -> Result<CommitId, Setback> {
    // A snapshot that is being made moves the branch back for a moment.
    finish_keeping(run).await;
    let (message, files) = (run.claim.record.title.clone(), run.claim.record.rules.files.clone());
    let workspace = Arc::clone(&open::open_desk(run).await?.workspace);
    let accepted = workspace.take_back(&message, &files).await?.head;
    let head = confidentiality::shown_as(&run.claim, workspace.mirror(), accepted).await?;
    run.claim.record.head = Some(head.clone());
    run.claim.save().await?;
    Ok(head)
}

/// Keeps the work where that is possible.
pub(crate) async fn keep_before_checks(run: &mut Run) -> Result<(), Setback> {
    let task = run.claim.lease.task.clone();
    let desk = open::open_desk(run).await?;
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

async fn keep(workspace: &Workspace) -> Result<CommitId, Setback> {
    let too_late = || Setback::failed(format!("the snapshot took longer than {} s", PATIENCE.as_secs()));
    let kept = tokio::time::timeout(PATIENCE, workspace.keep()).await;
    Ok(kept.map_err(|_| too_late())??)
}
