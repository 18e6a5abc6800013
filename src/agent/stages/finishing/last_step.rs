//! The last step of a run in this process, and what is saved before it.

use chrono::{TimeDelta, Utc};

use crate::agent::commands;
use crate::agent::dialogue;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::Order;
use crate::agent::record::outcome::{RunOutcome, UNSHOWN};
use crate::agent::record::{EndWithoutFailure, Parked, SavedWork};
use crate::agent::reporter::Carried;
use crate::agent::run::Run;
use crate::agent::stages::rescue;
use crate::journal::fact::Fact;
use crate::markdown::compose::Page;
use crate::task::state::{Signal, State};

/// Takes the last step of a run because of an order. What is noted of the order is saved with the
/// step, and the order is removed from the store only then: removed before, a kill between the two
/// would lose it, and the command that waits for it would still find the old state.
pub(super) async fn conclude_by(run: &mut Run, order: &Order, signal: Signal, ending: RunOutcome) -> RunOutcome {
    commands::note_executed(&mut run.claim, order);
    let concluded = conclude(run, signal, ending.clone()).await;
    if concluded == ending
        && let Err(interruption) = commands::tick_off(&run.claim, order).await
    {
        tracing::warn!(task = %run.claim.lease.task, "the order could not be ticked off: {interruption:?}");
    }
    concluded
}

/// Takes the last step of a run; returns `ending` if it is saved, and otherwise how the run was put
/// down.
pub(super) async fn conclude(run: &mut Run, signal: Signal, ending: RunOutcome) -> RunOutcome {
    match run.claim.step(signal).await {
        // The step was saved; the interruption only reports that the run is being stopped.
        Ok(()) | Err(Interruption::Cancelled) => ending,
        Err(interruption) => {
            tracing::error!(task = %run.claim.lease.task, "the end of the run could not be saved: {interruption:?}");
            match interruption {
                Interruption::Unsaved(_) => RunOutcome::Unsaved,
                _ => RunOutcome::Disowned,
            }
        }
    }
}

/// Records an end that no order brought about, before anything of it is shown. Returns where the
/// work is: on a branch if the item is still open and no other installation has finished it, and
/// that on a fork in a file.
///
/// # Errors
/// If the work cannot be brought there now: the end has to wait for it.
pub(super) async fn decide(run: &mut Run, end: EndWithoutFailure, reason: &str) -> Result<Option<SavedWork>, Parked> {
    run.claim.record.end(Utc::now());
    // What another installation finished is there already, and so is what was handed over.
    let is_wanted = matches!(end, EndWithoutFailure::Withdrawn { .. }) && !run.claim.record.is_handed_over();
    if run.claim.record.ending.as_ref() != Some(&end) {
        run.claim.note(Fact::Warned {
            text: format!("stopped: {reason}"),
        });
        run.claim.record.ending = Some(end);
        if let Err(interruption) = run.claim.save().await {
            tracing::error!(task = %run.claim.lease.task, "the end could not be saved: {interruption:?}");
        }
    }
    // The mirror of a fork has the only copy, and is removed with the run.
    if !is_wanted && run.claim.record.planned.fork.is_none() {
        return Ok(None);
    }
    if let Some(saved) = shown_before(run) {
        return Ok(Some(saved));
    }
    rescue::rescue(run).await
}

/// Has the run wait until a time, and shows that.
pub(super) async fn park(run: &mut Run, wait: Parked) -> RunOutcome {
    let parked = park_unseen(run, wait).await;
    // Nobody has to act, so there is no new comment: only the existing one and the label change.
    if let Err(interruption) = run.reporter.show_parked(&mut run.claim).await {
        tracing::warn!(task = %run.claim.lease.task, "it could not be shown that the run waits: {interruption:?}");
    }
    parked
}

/// Has the run wait until a time, and shows nothing of it on the item.
pub(super) async fn park_unseen(run: &mut Run, wait: Parked) -> RunOutcome {
    let Parked { until, reason } = wait.clone();
    run.claim.record.waiting.parked = Some(wait);
    save_or_log(run).await;
    run.claim.note(Fact::Postponed {
        until,
        reason: reason.clone(),
    });
    RunOutcome::Postponed { until, reason }
}

/// Returns the branch that the work of a waiting run was pushed to: nobody has worked on it since.
pub(super) fn shown_before(run: &Run) -> Option<SavedWork> {
    let paused = run.claim.record.waiting.paused.as_ref()?;
    let saved = paused.saved.clone().filter(|_| run.claim.state.is_set_aside());
    saved.filter(|saved| matches!(saved, SavedWork::Branch(_)))
}

/// Saves the run with its conversation. What cannot be saved is logged: the end of the work goes on
/// without it.
pub(super) async fn save_or_log(run: &mut Run) {
    let chat = run.dialogue.chat.take();
    let saved = match chat {
        Some(mut chat) => dialogue::save(&mut run.claim, &mut chat).await,
        None => run.claim.save().await,
    };
    if let Err(interruption) = saved {
        tracing::error!(task = %run.claim.lease.task, "the run could not be saved: {interruption:?}");
    }
}

/// Shows an end: in the progress comment, in one of its own, and by the label.
pub(super) async fn show_end(run: &mut Run, state: State, text: &Page) -> Result<(), Interruption> {
    run.reporter.show_final(&mut run.claim, state).await?;
    run.reporter.say(&mut run.claim, "final", text).await?;
    run.reporter.show_label(&mut run.claim, state, Carried::Unread).await
}

/// Logs why the end could not be shown, and returns how the run is put down until that is tried
/// again; `None` if it ends without it. The attempts come ever later, and are saved with the
/// record. While the store cannot be written nothing is posted, and nothing is concluded: the end
/// is in the record, or is decided again.
///
/// A forge that refuses may take the same later: with another token or right, or after a
/// conversation that was locked is open again. One that does not answer or accept the token is
/// waited for longer: the work was waited for just as long, and only the end that is shown names
/// the file that has it.
pub(super) async fn until_shown(run: &mut Run, interruption: &Interruption) -> Option<RunOutcome> {
    tracing::warn!(task = %run.claim.lease.task, "the end could not be shown on the item: {interruption:?}");
    if run.claim.record.request.local.is_some() {
        return None;
    }
    let now = Utc::now();
    let steering = &run.claim.services.settings.steering;
    let hours = TimeDelta::hours(i64::from(steering.give_up_hours));
    let (until, longest) = match interruption {
        Interruption::Postponed { until, .. } => (*until, hours + TimeDelta::days(i64::from(steering.expire_days))),
        Interruption::Unsaved(_) => return Some(RunOutcome::Unsaved),
        // The item is gone, or another worker has the run.
        Interruption::Withdrawn { .. } | Interruption::Disowned(_) => return None,
        _ => (now, hours),
    };
    let waiting = &mut run.claim.record.waiting;
    if now - waiting.failing_since(now) >= longest {
        tracing::error!(task = %run.claim.lease.task, "the run ends without that its end is shown on the item");
        return None;
    }
    let until = waiting.end_later(now, until);
    save_or_log(run).await;
    let reason = match interruption {
        Interruption::Postponed { reason, .. } => format!("{UNSHOWN}: {reason}"),
        Interruption::Failed(failure) => format!("{UNSHOWN}: {}", failure.in_words()),
        _ => UNSHOWN.to_owned(),
    };
    let reason = run.claim.services.redactor.clean(&reason).into_string();
    Some(RunOutcome::Postponed { until, reason })
}
