//! Saves the work to the mirror every few turns and before the checks, so that a lost container
//! costs a few turns and not all of them.
//!
//! A snapshot is made while the model thinks, which takes longer than the few hundred milliseconds
//! that it needs. The next tool call waits for it, so that it never sees half a change.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::confidentiality;
use crate::agent::workspace::unfinished_work::WorkCopy;
use crate::repository::CommitId;
use crate::workspace::error::WorkspaceError;
use crate::workspace::project::Project;

/// Number of turns with tool calls between two snapshots.
const EVERY: u32 = 10;

/// Longest time for one snapshot; if it takes longer, only the container has the latest work.
const PATIENCE: Duration = Duration::from_mins(1);

/// The outcome of taking the work out of its container.
pub(crate) enum Taken {
    Accepted(CommitId),
    /// Something in it stands in the way, which the model can mend; in words that are not too long
    /// for it, nor for people.
    Refused(WorkspaceError),
}

/// Counts a turn with tool calls, and starts a snapshot if it is due.
pub(crate) fn snapshot_if_due(run: &mut Run) {
    let task = run.claim.lease.task.clone();
    let Some(opened) = &mut run.workspace.open else { return };
    opened.keeping.turns += 1;
    if opened.keeping.turns < EVERY || opened.keeping.running.is_some() {
        return;
    }
    opened.keeping.turns = 0;
    let workspace = Arc::clone(&opened.project);
    let copy = WorkCopy::of(&run.claim);
    opened.keeping.running = Some(tokio::spawn(async move {
        // A lost container is noticed by the next tool call as well.
        if let Err(interruption) = keep(&workspace, copy).await {
            tracing::warn!(%task, "the work could not be kept: {interruption:?}");
        }
    }));
}

/// Waits for a running snapshot.
pub(crate) async fn finish_snapshot(run: &mut Run) {
    if let Some(opened) = &mut run.workspace.open {
        opened.keeping.finish().await;
    }
}

/// Commits and checks all changes, and saves the accepted commit in the record. Uncommitted changes
/// get the task's title as their message.
///
/// # Errors
/// Also if something in the work stands in the way: the run ends with it.
pub(crate) async fn commit_result(run: &mut Run) -> Result<CommitId, Interruption> {
    match take_back(run).await? {
        Taken::Accepted(head) => Ok(head),
        Taken::Refused(error) => Err(error.into()),
    }
}

/// Commits the work and takes it out of the container, judged; tells apart what the model can mend.
pub(crate) async fn take_back(run: &mut Run) -> Result<Taken, Interruption> {
    // A running snapshot temporarily moves the branch back.
    finish_snapshot(run).await;
    let (message, files) = (
        run.claim.record.request.title.clone(),
        run.claim.record.planned.rules.files.clone(),
    );
    let workspace = Arc::clone(&run.workspace.opened()?.project);
    let accepted = match workspace.take_back(&message, &files).await {
        Ok(accepted) => accepted.head,
        Err(error) if error.is_about_the_work() => return Ok(Taken::Refused(error.shortened())),
        Err(error) => return Err(error.into()),
    };
    let head = confidentiality::shown_as(&run.claim, workspace.mirror(), accepted).await?;
    run.claim.record.delivered.head = Some(head.clone());
    run.claim.save().await?;
    if let Some(copy) = WorkCopy::of(&run.claim) {
        _ = copy.write(workspace.mirror()).await;
    }
    Ok(Taken::Accepted(head))
}

/// Saves the work as it is now. A failure is only logged, unless the container is lost.
pub(crate) async fn snapshot_now(run: &mut Run) -> Result<(), Interruption> {
    let task = run.claim.lease.task.clone();
    let copy = WorkCopy::of(&run.claim);
    let opened = run.workspace.opened()?;
    opened.keeping.finish().await;
    match keep(&opened.project, copy).await {
        Err(lost @ Interruption::WorkspaceLost(_)) => Err(lost),
        Err(interruption) => {
            tracing::warn!(%task, "the work could not be kept: {interruption:?}");
            Ok(())
        }
        Ok(()) => Ok(()),
    }
}

async fn keep(workspace: &Project, copy: Option<WorkCopy>) -> Result<(), Interruption> {
    let too_late = || Interruption::failed(format!("the snapshot took longer than {} s", PATIENCE.as_secs()));
    let kept = tokio::time::timeout(PATIENCE, workspace.keep()).await;
    kept.map_err(|_| too_late())??;
    if let Some(copy) = copy {
        _ = copy.write(workspace.mirror()).await;
    }
    Ok(())
}
