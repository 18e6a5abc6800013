//! Takes the work of a run out of its container, or what was kept of it.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::confidentiality;
use crate::agent::workspace::fetching;
use crate::agent::workspace::open;
use crate::agent::workspace::snapshots;
use crate::agent::workspace::source;
use crate::agent::workspace::unfinished_work::{self, WorkCopy};
use crate::environment::Container;
use crate::forge::Item;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::workspace::kept_work;
use crate::workspace::project::Project;

/// Longest time for the container to give the work out.
const TAKING_TIME: Duration = Duration::from_secs(40);
/// Longest time for a last snapshot where it does not, and to look for the container of an earlier
/// process.
const KEEPING_TIME: Duration = Duration::from_secs(10);
/// Longest time to copy into the store what was taken out of it.
const COPYING_TIME: Duration = Duration::from_mins(1);

/// Fetches the commits from the workspace unless that was done before; where they cannot be had,
/// what was kept of them counts.
pub(crate) async fn take_result(run: &mut Run) {
    if run.claim.record.delivered.head.is_some() {
        return;
    }
    let title = run.claim.record.request.title.clone();
    // A container that does not answer must not take up the time for what was kept.
    let taken = match tokio::time::timeout(TAKING_TIME, take_out(run, &title)).await {
        Ok(Some(head)) => Some(head),
        Ok(None) | Err(_) => take_kept(run).await,
    };
    run.claim.record.delivered.head = taken;
}

/// Accepts what was kept of work that cannot be taken out: its container is gone, or something in
/// it stands in the way. What is refused of a result is refused here, too.
async fn take_kept(run: &mut Run) -> Option<CommitId> {
    let project = Arc::clone(&run.workspace.open.as_ref()?.project);
    // Anew, without what a snapshot leaves out; on failure the last one that was kept counts.
    match tokio::time::timeout(KEEPING_TIME, project.keep()).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(task = %run.claim.lease.task, "the work could not be kept: {error}"),
        Err(_) => tracing::warn!(task = %run.claim.lease.task, "the work could not be kept in time"),
    }
    let taken = async {
        let files = &run.claim.record.planned.rules.files;
        let Some(accepted) = project.take_kept(files).await? else {
            return Ok(None);
        };
        confidentiality::shown_as(&run.claim, project.mirror(), accepted.head)
            .await
            .map(Some)
    };
    match taken.await {
        Ok(head) => head,
        Err(interruption) => {
            tracing::warn!(task = %run.claim.lease.task, "what was kept of the work could not be taken: {interruption:?}");
            None
        }
    }
}

/// Fetches the commits from the workspace, if one is open; `message` is for what was uncommitted.
pub(super) async fn take_out(run: &mut Run, message: &str) -> Option<CommitId> {
    // A running snapshot temporarily moves the branch back.
    snapshots::finish_snapshot(run).await;
    let project = Arc::clone(&run.workspace.open.as_ref()?.project);
    take_out_of(&run.claim, &project, message).await
}

async fn take_out_of(claim: &Claim, project: &Project, message: &str) -> Option<CommitId> {
    let taken = async {
        let files = &claim.record.planned.rules.files;
        let accepted = project.take_back(message, files).await?;
        confidentiality::shown_as(claim, project.mirror(), accepted.head).await
    };
    match taken.await {
        Ok(head) => Some(head),
        Err(interruption) => {
            tracing::warn!(task = %claim.lease.task, "the work so far could not be taken out: {interruption:?}");
            None
        }
    }
}

/// Takes out what an earlier process left of the work, if there is any: that process was stopped or
/// killed, and nobody has gone on with the run.
pub(super) async fn take_left(run: &mut Run, item: &Item) -> Result<Option<CommitId>, Interruption> {
    let container = find_left(&run.claim).await;
    if container.is_none() && !may_be_kept(run, item).await {
        return Ok(None);
    }
    let mirror = source::source_at_end(run, item).await?.mirror;
    take_left_into(run, &mirror, container).await
}

/// Returns the container that an earlier process left. An engine that does not answer has none: the
/// end would have to wait for it, and has what was kept.
pub(super) async fn find_left(claim: &Claim) -> Option<Container> {
    match tokio::time::timeout(KEEPING_TIME, open::find_left(claim)).await {
        Ok(Ok(container)) => container,
        Ok(Err(error)) => {
            tracing::warn!(task = %claim.lease.task, "the container with the work could not be looked for: {error}");
            None
        }
        Err(_) => {
            tracing::warn!(task = %claim.lease.task, "the container with the work could not be looked for in time");
            None
        }
    }
}

/// Tells whether the mirror of this machine or the store may have a snapshot, without asking the
/// forge's git server: where there is none, nothing has to be waited for.
async fn may_be_kept(run: &Run, item: &Item) -> bool {
    let claim = &run.claim;
    let Some(base) = &claim.record.planned.base else {
        return false;
    };
    let mirror = match &run.workspace.mirror {
        Some(mirror) => Some(mirror.clone()),
        None => fetching::at_hand(claim, &item.clone_url).await.unwrap_or_default(),
    };
    if unfinished_work::has_more_than(claim, mirror.as_ref()).await {
        return true;
    }
    let Some(mirror) = mirror else {
        return false;
    };
    let kept = kept_work::head(&mirror, base, &claim.lease.run.to_string()).await;
    // What cannot be read is not taken for nothing.
    !matches!(kept, Ok(None))
}

/// Takes the work out of a left container into `mirror`, or what the mirror keeps of it where that
/// fails. The result is saved, and the container removed.
pub(super) async fn take_left_into(
    run: &mut Run,
    mirror: &Mirror,
    container: Option<Container>,
) -> Result<Option<CommitId>, Interruption> {
    let Some(base) = run.claim.record.planned.base.clone() else {
        return Ok(None);
    };
    let id = run.claim.lease.run.to_string();
    let is_left = container.is_some();
    let mut head = None;
    if let Some(container) = container {
        let project = Project::take_over(container, mirror.clone(), base.clone(), id.clone());
        let title = &run.claim.record.request.title;
        let taking = take_out_of(&run.claim, &project, title);
        head = tokio::time::timeout(TAKING_TIME, taking).await.ok().flatten();
    }
    if head.is_none() {
        let files = &run.claim.record.planned.rules.files;
        head = match kept_work::accept(mirror, &base, &id, files).await? {
            Some(accepted) => Some(confidentiality::shown_as(&run.claim, mirror, accepted.head).await?),
            None => None,
        };
    }
    if let Some(copy) = WorkCopy::of(&run.claim) {
        // Too late is no loss on this machine, which has the work in the mirror.
        let _ = tokio::time::timeout(COPYING_TIME, copy.write(mirror)).await;
    }
    run.claim.record.delivered.head.clone_from(&head);
    run.claim.save().await?;
    if is_left {
        open::remove_left_container(&run.claim).await;
    }
    Ok(head)
}
