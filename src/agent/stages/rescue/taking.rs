//! Takes the work of a run out of its container, or what was kept of it.
//!
//! The container has work that is nowhere else. It stays until that work is out, or was judged and
//! refused, or its engine has been asked for it for long enough; only then what was kept counts.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::error::Elapsed;
use tokio::time::timeout;

use crate::agent::claim::Claim;
use crate::agent::run::Run;
use crate::agent::stages::rescue::attempts::Attempt;
use crate::agent::stages::rescue::obstacle::Obstacle;
use crate::agent::workspace::confidentiality;
use crate::agent::workspace::fetching;
use crate::agent::workspace::open;
use crate::agent::workspace::snapshots;
use crate::agent::workspace::source;
use crate::agent::workspace::unfinished_work::{self, WorkCopy};
use crate::environment::{Container, EnvironmentError};
use crate::forge::Item;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::workspace::error::WorkspaceError;
use crate::workspace::kept_work;
use crate::workspace::project::Project;

/// Longest time for the container to give the work out.
const TAKING_TIME: Duration = Duration::from_secs(40);
/// Longest time for a last snapshot where it does not, and to look for the container of an earlier
/// process.
const KEEPING_TIME: Duration = Duration::from_secs(10);
/// Longest time to copy into the store what was taken out of it.
const COPYING_TIME: Duration = Duration::from_mins(1);

/// The step that may take too long, as [`Obstacle::too_late`] tells it.
pub(super) const TAKING: &str = "taking it out of its container";

/// Work that was taken out of its container, or else what was kept of it.
struct Taken {
    /// `None` if there is none.
    head: Option<CommitId>,
    /// Why the last of the work may be missing in it, in words for people.
    left_out: Option<String>,
}

impl From<Option<CommitId>> for Taken {
    fn from(head: Option<CommitId>) -> Self {
        let left_out = None;
        Self { head, left_out }
    }
}

/// Fetches the commits from the workspace unless that was done before; where they cannot be had,
/// what was kept of them counts.
pub(crate) async fn take_result(run: &mut Run, attempt: Attempt) -> Result<(), Obstacle> {
    if run.claim.record.delivered.head.is_some() {
        return Ok(());
    }
    let claim = &run.claim;
    let Some(opened) = &mut run.workspace.open else {
        return Ok(());
    };
    let project = Arc::clone(&opened.project);
    let taking = async {
        // A running snapshot temporarily moves the branch back.
        opened.keeping.finish().await;
        take_out_of(claim, &project, &claim.record.request.title).await
    };
    // A container that does not answer must not take up the time for what was kept.
    let taken = timeout(TAKING_TIME, taking).await;
    let taken: Taken = match or_kept(claim, &project, taken, attempt).await {
        // Nobody has worked in a container before it has the whole project.
        Err(_) if !has_whole_project(claim, &project) => take_kept(claim, project.mirror()).await?.into(),
        taken => taken?,
    };
    let delivered = &mut run.claim.record.delivered;
    delivered.head = taken.head;
    delivered.left_out = taken.left_out;
    Ok(())
}

fn has_whole_project(claim: &Claim, project: &Project) -> bool {
    claim.record.prepared.container.as_deref() == Some(project.container_id())
}

/// Returns what was taken out of the container, or else what was kept of it: where the work was
/// refused, where the container is gone, and where the last attempt failed.
async fn or_kept(
    claim: &Claim,
    project: &Project,
    taken: Result<Result<CommitId, WorkspaceError>, Elapsed>,
    attempt: Attempt,
) -> Result<Taken, Obstacle> {
    let obstacle = match taken {
        Ok(Ok(head)) => return Ok(Some(head).into()),
        Ok(Err(WorkspaceError::Environment(lost @ EnvironmentError::ContainerLost { .. }))) => {
            tracing::warn!(task = %claim.lease.task, "the work so far could not be taken out: {lost}");
            return Ok(take_kept(claim, project.mirror()).await?.into());
        }
        Ok(Err(error)) => Obstacle::of_taking(error),
        Err(_) => Obstacle::too_late(TAKING),
    };
    tracing::warn!(task = %claim.lease.task, "the work so far could not be taken out: {obstacle:?}");
    if attempt.is_followed_after(&obstacle) {
        return Err(obstacle);
    }
    // Anew, without what a snapshot leaves out; on failure the last one that was kept counts.
    let is_whole = match timeout(KEEPING_TIME, project.keep()).await {
        Ok(Ok(is_whole)) => is_whole,
        Ok(Err(error)) => {
            tracing::warn!(task = %claim.lease.task, "the work could not be kept: {error}");
            false
        }
        Err(_) => {
            tracing::warn!(task = %claim.lease.task, "the work could not be kept in time");
            false
        }
    };
    let missing = obstacle.reason().filter(|_| !is_whole);
    match take_kept(claim, project.mirror()).await {
        Ok(Some(head)) => Ok(Taken {
            head: Some(head),
            left_out: missing.map(|reason| told(claim, reason)),
        }),
        Err(passes) if attempt.is_followed_after(&passes) => Err(passes),
        // There is work, and what stands in its way is told.
        Ok(None) | Err(_) => Err(obstacle),
    }
}

/// Returns a reason as it is stored: an escaped secret would no longer match the redactor's
/// patterns.
pub(super) fn told(claim: &Claim, reason: &str) -> String {
    claim.services.redactor.clean(reason).into_string()
}

/// Accepts what was kept of the work. What is refused of a result is refused here, too.
async fn take_kept(claim: &Claim, mirror: &Mirror) -> Result<Option<CommitId>, Obstacle> {
    let Some(base) = &claim.record.planned.base else {
        return Ok(None);
    };
    let taking = async {
        let (run, files) = (claim.lease.run.to_string(), &claim.record.planned.rules.files);
        let Some(accepted) = kept_work::accept(mirror, base, &run, files).await? else {
            return Ok(None);
        };
        let head = confidentiality::shown_as(claim, mirror, accepted.head).await?;
        Ok::<_, WorkspaceError>(Some(head))
    };
    taking.await.map_err(|error| {
        tracing::warn!(task = %claim.lease.task, "what was kept of the work could not be taken: {error}");
        Obstacle::of_taking(error)
    })
}

/// Fetches the commits from the workspace of a run that goes on, if one is open; `message` is for
/// what was uncommitted. A result that was taken out before is returned as it is: taken out anew it
/// would be another commit in its place, and what was reviewed could not be pushed any more. A
/// failure is logged: the run keeps its work.
pub(super) async fn take_out(run: &mut Run, message: &str) -> Option<CommitId> {
    if let Some(head) = &run.claim.record.delivered.head {
        return Some(head.clone());
    }
    // A running snapshot temporarily moves the branch back.
    snapshots::finish_snapshot(run).await;
    let project = Arc::clone(&run.workspace.open.as_ref()?.project);
    match take_out_of(&run.claim, &project, message).await {
        Ok(head) => Some(head),
        Err(error) => {
            tracing::warn!(task = %run.claim.lease.task, "the work so far could not be taken out: {error}");
            None
        }
    }
}

async fn take_out_of(claim: &Claim, project: &Project, message: &str) -> Result<CommitId, WorkspaceError> {
    let files = &claim.record.planned.rules.files;
    let accepted = project.take_back(message, files).await?;
    Ok(confidentiality::shown_as(claim, project.mirror(), accepted.head).await?)
}

/// Takes out what an earlier process left of the work, if there is any: that process was stopped or
/// killed, and nobody has gone on with the run.
pub(super) async fn take_left(run: &mut Run, item: &Item, attempt: Attempt) -> Result<Option<CommitId>, Obstacle> {
    let Some(container) = find_left(&run.claim, attempt).await? else {
        if !may_be_kept(run, item).await {
            return Ok(None);
        }
        let mirror = source::source_at_end(run, item).await?.mirror;
        return take_left_into(run, &mirror, None, attempt).await;
    };
    let mirror = mirror_for_left(run, item, attempt).await?;
    take_left_into(run, &mirror, Some(container), attempt).await
}

/// Returns the mirror that takes the work of a left container: that of this machine as it is, since
/// a fetch could only fail, or else the fetched one.
async fn mirror_for_left(run: &mut Run, item: &Item, attempt: Attempt) -> Result<Mirror, Obstacle> {
    let at_hand = mirror_with_base(run, item).await;
    // Of a container that is lost what was kept counts, and the store may have more of that.
    if let Some(mirror) = &at_hand
        && !unfinished_work::has_more_than(&run.claim, Some(mirror)).await
    {
        return Ok(mirror.clone());
    }
    let obstacle = match source::source_at_end(run, item).await {
        Ok(source) => return Ok(source.mirror),
        Err(interruption) => Obstacle::from(interruption),
    };
    match (obstacle, at_hand) {
        // The store's copy is damaged, say: the container has the newest work.
        (Obstacle::Stays(_), Some(mirror)) => Ok(mirror),
        (obstacle, _) => Err(before_asked(&run.claim, obstacle, attempt).await),
    }
}

/// Returns the mirror of this machine if it has the base of the work: what comes out of a container
/// has only what is new.
async fn mirror_with_base(run: &Run, item: &Item) -> Option<Mirror> {
    let base = run.claim.record.planned.base.as_ref()?;
    let mirror = at_hand(run, item).await?;
    mirror.tree(&base.commit).await.is_ok().then_some(mirror)
}

/// Returns the mirror of this machine, without a fetch.
async fn at_hand(run: &Run, item: &Item) -> Option<Mirror> {
    match &run.workspace.mirror {
        Some(mirror) => Some(mirror.clone()),
        None => fetching::at_hand(&run.claim, &item.clone_url).await.unwrap_or_default(),
    }
}

/// Fetches the repository of a run for the work in a left container; `None` if nothing is to be
/// brought to its item any more.
pub(super) async fn fetch_for_left(run: &mut Run, attempt: Attempt) -> Result<Option<Mirror>, Obstacle> {
    let fetched = match run.reporter.item_at_end(&run.claim).await {
        Ok(Some(item)) => source::source_at_end(run, &item).await,
        Ok(None) => return Ok(None),
        Err(interruption) => Err(interruption),
    };
    match fetched {
        Ok(source) => Ok(Some(source.mirror)),
        Err(interruption) => Err(before_asked(&run.claim, interruption.into(), attempt).await),
    }
}

/// Returns an obstacle that was met before a left container was asked for its work, if there is
/// one: it passes as long as another attempt follows. The container is removed with the end of the
/// run, and has work that is nowhere else.
pub(super) async fn before_asked(claim: &Claim, obstacle: Obstacle, attempt: Attempt) -> Obstacle {
    let Obstacle::Stays(reason) = obstacle else {
        return obstacle;
    };
    match find_left(claim, attempt).await {
        Ok(Some(_)) | Err(_) if attempt == Attempt::Followed => Obstacle::passes(reason),
        Ok(_) | Err(_) => Obstacle::Stays(reason),
    }
}

/// Returns the container that an earlier process left. An engine that does not answer may have it;
/// it has none once it was asked for long enough.
pub(super) async fn find_left(claim: &Claim, attempt: Attempt) -> Result<Option<Container>, Obstacle> {
    let obstacle = match timeout(KEEPING_TIME, open::find_left(claim)).await {
        Ok(Ok(container)) => return Ok(container),
        Ok(Err(error)) => Obstacle::passes(error.to_string()),
        Err(_) => Obstacle::too_late("looking for the container with it"),
    };
    tracing::warn!(task = %claim.lease.task, "the container with the work could not be looked for: {obstacle:?}");
    if attempt == Attempt::Followed {
        return Err(obstacle);
    }
    Ok(None)
}

/// Tells whether the mirror of this machine or the store may have a snapshot, without asking the
/// forge's git server: where there is none, nothing has to be waited for.
async fn may_be_kept(run: &Run, item: &Item) -> bool {
    let claim = &run.claim;
    let Some(base) = &claim.record.planned.base else {
        return false;
    };
    let mirror = at_hand(run, item).await;
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

/// Takes the work out of a left container into `mirror`, or what the mirror keeps of it. The result
/// is saved, and then the container removed.
pub(super) async fn take_left_into(
    run: &mut Run,
    mirror: &Mirror,
    container: Option<Container>,
    attempt: Attempt,
) -> Result<Option<CommitId>, Obstacle> {
    let Some(base) = run.claim.record.planned.base.clone() else {
        return Ok(None);
    };
    let is_left = container.is_some();
    let Taken { head, left_out } = match container {
        Some(container) => {
            let id = run.claim.lease.run.to_string();
            let project = Project::take_over(container, mirror.clone(), base, id);
            // A command of the process that was killed may still be writing.
            let taken = match project.end_earlier().await {
                Ok(()) => {
                    let taking = take_out_of(&run.claim, &project, &run.claim.record.request.title);
                    timeout(TAKING_TIME, taking).await
                }
                Err(error) => Ok(Err(error)),
            };
            or_kept(&run.claim, &project, taken, attempt).await?
        }
        None => take_kept(&run.claim, mirror).await?.into(),
    };
    if let Some(copy) = WorkCopy::of(&run.claim) {
        // Too late is no loss on this machine, which has the work in the mirror.
        let _ = timeout(COPYING_TIME, copy.write(mirror)).await;
    }
    run.claim.record.delivered.head.clone_from(&head);
    run.claim.record.delivered.left_out = left_out;
    run.claim.save().await?;
    if is_left {
        open::remove_left_container(&run.claim).await;
    }
    Ok(head)
}
