//! Saves unfinished work: [`keep_work`] of a run that another process continues, [`set_work_aside`]
//! of one that waits, [`rescue`] of one that ends.
//!
//! Work that began in a fork is not pushed to any branch: its history has the fork's commits, and
//! on a branch of the item's own repository these would run with that repository's secrets. It is
//! kept on the worker, and people are told so.

pub(super) mod obstacle; // why it is not brought, and whether that passes
pub(super) mod attempts; // for how long it is tried
pub(super) mod taking; // takes the work out of its container, or what was kept of it
pub(super) mod pushing; // pushes it to a branch of the program's own
mod file; // puts it into a file

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;

use crate::agent::record::interruption::Interruption;
use crate::agent::record::{KeptWork, Parked, SavedWork};
use crate::agent::run::Run;
use crate::agent::workspace::fetching;
use crate::agent::workspace::open;
use crate::agent::workspace::unfinished_work::{Copied, WorkCopy};
use crate::forge::Item;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::task::state::{Judged, State};
use attempts::Attempt;
use obstacle::Obstacle;
use pushing::show_work;

/// Longest time to save the work when a run ends or is suspended.
pub(crate) const RESCUE_TIME: Duration = Duration::from_mins(1);

/// Message of the commit with changes that were uncommitted when the run was paused.
const UNFINISHED: &str = "Work in progress";

/// Saves the work of a run that is set aside: [`keep_work`], and on a branch.
pub(crate) async fn set_work_aside(run: &mut Run) -> Option<SavedWork> {
    if !keep_work(run).await {
        return None;
    }
    let shown = async {
        let head = taking::take_out(run, UNFINISHED).await?;
        copy_work(run).await;
        show_unfinished(run, &head).await
    };
    tokio::time::timeout(RESCUE_TIME, shown).await.ok().flatten()
}

/// Saves the workspace to the mirror for the next container. Returns true if there was something to
/// save and it was saved; on failure the container stays for the process that resumes the run.
pub(crate) async fn keep_work(run: &mut Run) -> bool {
    let is_worth_it = match run.claim.state {
        State::Working | State::AwaitingAnswer | State::Verifying | State::Reviewing(Judged::Result) => true,
        State::Delivering => run.claim.record.delivered.head.is_none(),
        _ => false,
    };
    let Some(opened) = run.workspace.open.as_mut().filter(|_| is_worth_it) else {
        return false;
    };
    opened.keeping.finish().await;
    match tokio::time::timeout(RESCUE_TIME, opened.project.keep()).await {
        Ok(Ok(true)) => {
            copy_work(run).await;
            return true;
        }
        Ok(Ok(false)) => {
            tracing::warn!(task = %run.claim.lease.task, "not all of the work can be kept outside of its container, which stays");
            copy_work(run).await;
        }
        Ok(Err(interruption)) => {
            tracing::warn!(task = %run.claim.lease.task, "the work could not be kept: {interruption:?}");
        }
        Err(_) => tracing::warn!(task = %run.claim.lease.task, "the work could not be kept in time"),
    }
    // The work, or some of it, exists only in the container, which stays for the process that
    // resumes the run.
    open::leave_container(run).await;
    false
}

/// Copies what the mirror keeps of the run into the store. Where other machines share the store,
/// what is too large for it is pushed to a branch instead.
async fn copy_work(run: &mut Run) {
    let (Some(opened), Some(copy)) = (&run.workspace.open, WorkCopy::of(&run.claim)) else {
        return;
    };
    let project = Arc::clone(&opened.project);
    // Too late is no loss on this machine, which has the work in the mirror.
    let copied = tokio::time::timeout(RESCUE_TIME, copy.write(project.mirror())).await;
    if copied != Ok(Copied::TooLarge) || !run.claim.services.store.is_shared() {
        return;
    }
    let pushed = async {
        let head = taking::take_out(run, UNFINISHED).await?;
        let SavedWork::Branch(branch) = show_unfinished(run, &head).await? else {
            return None;
        };
        // Where no push may be forced, that is another commit with the same files.
        run.claim.record.delivered.unfinished.get(&branch)?.last().cloned()
    };
    if let Ok(Some(pushed)) = tokio::time::timeout(RESCUE_TIME, pushed).await {
        copy.refer_to(project.mirror(), pushed).await;
    }
}

/// Brings the work so far to a branch of the program's own, so that an end before delivery loses
/// nothing. Work on a fork is written to a file instead. Returns `None` if there is none, or none
/// that may be shown; and if people have the result: they may have merged it and deleted its
/// branch, which a push would make anew.
///
/// # Errors
/// If it cannot be done now: the end has to wait for it, since nobody is told of work that comes
/// after the end. That lasts for `steering.give_up_hours`; then people are told which file has it.
pub(crate) async fn rescue(run: &mut Run) -> Result<Option<SavedWork>, Parked> {
    if run.claim.record.is_handed_over() {
        return Ok(None);
    }
    if let Some(saved) = &run.claim.record.delivered.rescued {
        return Ok(Some(saved.clone()));
    }
    let attempt = Attempt::begin(&run.claim);
    // What is strange enough to break the program would break each attempt to end the run.
    let brought = AssertUnwindSafe(Box::pin(bring(run, attempt))).catch_unwind().await;
    let saved = match brought.unwrap_or_else(|_| Err(Obstacle::Stays(Run::fault().text))) {
        Ok(saved) => saved,
        Err(Obstacle::Passes { until, reason }) => match attempt.next(&mut run.claim, until, &reason) {
            Ok(wait) => return Err(wait),
            Err(given_up) => give_up(run, &given_up).await,
        },
        Err(Obstacle::Stays(reason)) => give_up(run, &reason).await,
        Err(Obstacle::Moot) => None,
    };
    run.claim.record.brought(saved.as_ref());
    if saved.is_some()
        && let Err(interruption) = run.claim.save().await
    {
        tracing::warn!(task = %run.claim.lease.task, "it could not be saved where the work is: {interruption:?}");
    }
    Ok(saved)
}

/// Puts the work into a file, because it cannot be brought to the forge; `None` if there is none.
/// Where nothing of it can be put into a file, people are told of it all the same.
async fn give_up(run: &mut Run, reason: &str) -> Option<SavedWork> {
    tracing::warn!(task = %run.claim.lease.task, "the work so far could not be brought to the forge: {reason}");
    let putting = async {
        let mirror = mirror_at_hand(run).await;
        file::put(run, mirror.as_ref()).await
    };
    let file = match tokio::time::timeout(RESCUE_TIME, putting).await {
        Ok(Ok(file)) => file,
        Ok(Err(error)) => {
            tracing::warn!(task = %run.claim.lease.task, "nor could it be put into a file: {error:#}");
            None
        }
        Err(_) => {
            tracing::warn!(task = %run.claim.lease.task, "nor could it be put into a file in time");
            None
        }
    };
    let reason = taking::told(&run.claim, reason);
    let record = &mut run.claim.record;
    // A model has worked only in a container that was complete.
    let may_be_work = record.delivered.head.is_some() || record.prepared.container.is_some();
    match file {
        Some(file) if record.planned.fork.is_some() => {
            record.delivered.left_out.get_or_insert(reason);
            Some(SavedWork::Kept(KeptWork::File(file)))
        }
        None if !may_be_work => None,
        file => Some(SavedWork::Unbrought { reason, file }),
    }
}

/// Returns the mirror of the repository that the run works in, if this machine has it.
async fn mirror_at_hand(run: &Run) -> Option<Mirror> {
    if let Some(mirror) = &run.workspace.mirror {
        return Some(mirror.clone());
    }
    let url = match &run.claim.record.planned.fork {
        Some(fork) => fork.clone(),
        None => run.reporter.item_at_end(&run.claim).await.ok()??.clone_url,
    };
    fetching::at_hand(&run.claim, &url).await.ok().flatten()
}

/// Brings the work to the forge; `None` if there is none, or none that may be shown.
async fn bring(run: &mut Run, attempt: Attempt) -> Result<Option<SavedWork>, Obstacle> {
    // Saved before the forge is asked for anything. Where it has to be waited for, the next claim
    // finds no container. On this machine it pushes from the mirror, on another from the copy.
    let noted = tokio::time::timeout(RESCUE_TIME, note_result(run, attempt)).await;
    let noted = noted.unwrap_or_else(|_| Err(Obstacle::too_late(taking::TAKING)));
    if let Err(obstacle) = &noted
        && attempt.is_followed_after(obstacle)
    {
        // The next attempt takes it from there.
        open::leave_container(run).await;
    }
    noted?;
    copy_work(run).await;
    let mut patience = RESCUE_TIME;
    if run.claim.record.waiting.postponed > 0 {
        // At first people wait for the end, and so does a worker. Later there is time to fetch a
        // large repository to another machine.
        patience += Duration::from_secs(run.claim.services.settings.repository.timeout_seconds);
    }
    let process = run.claim.stop.process.clone();
    let until_stopped = async move {
        process.cancelled().await;
        tokio::time::sleep(RESCUE_TIME).await;
    };
    tokio::select! {
        biased;
        handed_over = tokio::time::timeout(patience, Box::pin(hand_over(run, attempt))) => {
            handed_over.unwrap_or_else(|_| Err(Obstacle::too_late("fetching the repository, or pushing to it,")))
        }
        () = until_stopped => Err(Interruption::Cancelled.into()),
    }
}

/// Pushes the work to a branch, or puts that on a fork into a file.
async fn hand_over(run: &mut Run, attempt: Attempt) -> Result<Option<SavedWork>, Obstacle> {
    if let Some(fork) = run.claim.record.planned.fork.clone() {
        return put_into_file(run, &fork, attempt).await;
    }
    let Some(base) = run.claim.record.planned.base.as_ref().map(|base| base.commit.clone()) else {
        return Ok(None);
    };
    let known = run.claim.record.delivered.head.clone();
    let may_be_there = match &known {
        Some(head) => *head != base,
        // What an open container has was taken out before.
        None => run.workspace.open.is_none() && run.claim.record.prepared.container.is_some(),
    };
    if !may_be_there {
        return Ok(None);
    }
    let item = match run.reporter.item_at_end(&run.claim).await {
        Ok(Some(item)) => item,
        Ok(None) => return Ok(None),
        Err(interruption) if known.is_some() => return Err(interruption.into()),
        Err(interruption) => return Err(taking::before_asked(&run.claim, interruption.into(), attempt).await),
    };
    let head = match known {
        Some(head) => Some(head),
        None => taking::take_left(run, &item, attempt).await?,
    };
    let Some(head) = head.filter(|head| *head != base) else {
        return Ok(None);
    };
    use_mirror_at_hand(run, &item, &head).await;
    Ok(show_work(run, &head, &item).await?)
}

/// Has the work pushed from the mirror of this machine as it is, where that has it: a fetch could
/// only fail, or take long.
async fn use_mirror_at_hand(run: &mut Run, item: &Item, head: &CommitId) {
    if run.workspace.mirror.is_some() {
        return;
    }
    let Ok(Some(mirror)) = fetching::at_hand(&run.claim, &item.clone_url).await else {
        return;
    };
    if mirror.pushable(&run.claim.lease.run.to_string(), head).await.is_ok() {
        run.workspace.mirror = Some(mirror);
    }
}

/// Puts the work on a fork into a file, since its mirror is removed at the end of the run.
async fn put_into_file(run: &mut Run, fork: &str, attempt: Attempt) -> Result<Option<SavedWork>, Obstacle> {
    let mut mirror = fetching::at_hand(&run.claim, fork).await.map_err(Interruption::from)?;
    let is_taken = run.claim.record.delivered.head.is_some() || run.workspace.open.is_some();
    if !is_taken && let Some(container) = taking::find_left(&run.claim, attempt).await? {
        if mirror.is_none() {
            // Another machine worked on it.
            mirror = taking::fetch_for_left(run, attempt).await?;
        }
        if let Some(mirror) = &mirror {
            taking::take_left_into(run, mirror, Some(container), attempt).await?;
        }
    }
    match file::put(run, mirror.as_ref()).await {
        Ok(file) => Ok(file.map(|file| SavedWork::Kept(KeptWork::File(file)))),
        Err(error) => {
            tracing::warn!(task = %run.claim.lease.task, "the work on a fork could not be put into a file: {error:#}");
            Err(Obstacle::of_file(&error))
        }
    }
}

/// Takes the work out and saves that.
async fn note_result(run: &mut Run, attempt: Attempt) -> Result<(), Obstacle> {
    taking::take_result(run, attempt).await?;
    match run.claim.save().await {
        Ok(()) => {}
        Err(Interruption::Disowned(_)) => return Err(Obstacle::Moot),
        // The next process finds in the store neither the work nor, perhaps, the end of the run.
        Err(interruption @ Interruption::Unsaved(_)) if attempt == Attempt::Followed => {
            return Err(interruption.into());
        }
        Err(interruption) => {
            tracing::warn!(task = %run.claim.lease.task, "the work taken out could not be noted: {interruption:?}");
        }
    }
    Ok(())
}

/// Shows the work of a run that goes on. A failure is logged: the run keeps its work.
async fn show_unfinished(run: &mut Run, head: &CommitId) -> Option<SavedWork> {
    if *head == run.claim.record.planned.base.as_ref()?.commit {
        return None;
    }
    let shown = match run.reporter.item(&mut run.claim).await {
        Ok(Some(item)) => show_work(run, head, &item).await,
        Ok(None) => return None,
        Err(interruption) => Err(interruption),
    };
    match shown {
        Ok(saved) => saved,
        Err(interruption) => {
            tracing::warn!(task = %run.claim.lease.task, "the work so far could not be pushed: {interruption:?}");
            None
        }
    }
}
