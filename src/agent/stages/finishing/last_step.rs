//! The last step of a run in this process, and what is saved before it.

use chrono::{DateTime, Utc};

use crate::agent::commands;
use crate::agent::dialogue;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::Order;
use crate::agent::record::outcome::RunOutcome;
use crate::agent::record::{EndWithoutFailure, Parked};
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

/// Records an end that no order brought about, before anything of it is shown.
///
/// # Errors
/// If the work on a fork cannot be put into a file now: the end has to wait for it.
pub(super) async fn decide(run: &mut Run, end: EndWithoutFailure, reason: &str) -> Result<(), Parked> {
    run.claim.record.waiting.end(Utc::now());
    if run.claim.record.ending.as_ref() != Some(&end) {
        run.claim.note(Fact::Warned {
            text: format!("stopped: {reason}"),
        });
        run.claim.record.ending = Some(end);
        if let Err(interruption) = run.claim.save().await {
            tracing::error!(task = %run.claim.lease.task, "the end could not be saved: {interruption:?}");
        }
    }
    if run.claim.record.planned.fork.is_some() {
        // The fork's mirror has the only copy, and is removed with the run.
        rescue::rescue(run).await?;
    }
    Ok(())
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

/// Logs why the end could not be shown. Returns the time to show it at if the forge only has to be
/// waited for.
pub(super) fn until_shown(run: &Run, interruption: &Interruption) -> Option<DateTime<Utc>> {
    tracing::warn!(task = %run.claim.lease.task, "the end could not be shown on the item: {interruption:?}");
    match interruption {
        Interruption::Postponed { until, .. } => Some(*until),
        _ => None,
    }
}
