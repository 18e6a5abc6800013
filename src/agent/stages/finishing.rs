//! Ends or suspends a run: its work is saved, people are told, and the lease is released.

mod last_step; // the last step of a run in this process, and what is saved before it

use chrono::{DateTime, TimeDelta, Utc};

use crate::agent::commands;
use crate::agent::inbox::mailbox::Messages;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::{Order, OrderSource};
use crate::agent::record::outcome::RunOutcome;
use crate::agent::record::{EndWithoutFailure, Failure, Parked, Paused, PausedBy, SavedWork};
use crate::agent::reporter::Carried;
use crate::agent::reporter::destination::ReportTarget;
use crate::agent::run::Run;
use crate::agent::stages::closing;
use crate::agent::stages::elsewhere;
use crate::agent::stages::rescue;
use crate::agent::stages::rescue::RESCUE_TIME;
use crate::agent::stages::rescue::attempts::Attempt;
use crate::agent::text::comments;
use crate::agent::text::replies;
use crate::agent::text::usage::used;
use crate::agent::workspace::open;
use crate::journal::fact::Fact;
use crate::task::state::{Signal, State};
use last_step::{conclude, conclude_by, decide, park, park_unseen, save_or_log, show_end, shown_before, until_shown};

/// Delay after the store could not be written, so that the model is not paid repeatedly for the
/// same step.
const UNSAVED_WAIT_MINUTES: i64 = 2;

/// Ends the work on the run, temporarily or finally.
pub(crate) async fn finish(run: Run, interruption: Interruption) -> RunOutcome {
    // Boxed: it is rare, and every future that may have to call it would carry its large state.
    Box::pin(act_on(run, interruption)).await
}

/// Shows an end that was decided before, and could not be shown then.
pub(crate) async fn show_decided(run: Run, end: Interruption) -> RunOutcome {
    let end = match Box::pin(run.claim.begin_item()).await {
        Err(
            elsewhere @ (Interruption::ClaimedElsewhere { .. }
            | Interruption::FinishedElsewhere
            | Interruption::Withdrawn { .. }),
        ) => elsewhere,
        // Where the item cannot be claimed now, nobody else can do so either, and the end is no
        // other for it. It meets itself what is in the way.
        Ok(()) | Err(_) => end,
    };
    finish(run, end).await
}

async fn act_on(mut run: Run, interruption: Interruption) -> RunOutcome {
    let interruption = elsewhere::unless_finished(&run, interruption).await;
    let ending = match interruption {
        Interruption::Disowned(error) => {
            // Another worker may be using the container at this moment, so nothing is touched.
            tracing::error!(task = %run.claim.lease.task, "the run was given up: {error}");
            run.workspace.open = None;
            return RunOutcome::Disowned;
        }
        Interruption::Unsaved(error) => {
            tracing::error!(task = %run.claim.lease.task, "the run could not be saved and is put down: {error}");
            RunOutcome::Unsaved
        }
        Interruption::Cancelled => interrupt(&mut run).await,
        Interruption::Postponed { until, reason } => postpone(&mut run, until, &reason).await,
        Interruption::Withdrawn { reason, item_exists } => withdraw(&mut run, &reason, item_exists).await,
        Interruption::FinishedElsewhere => overtaken(&mut run).await,
        Interruption::ClaimedElsewhere { until } => give_way(&mut run, until).await,
        Interruption::Stopped { order } => stop(&mut run, &order).await,
        Interruption::Paused { by, order } => pause(&mut run, by, order).await,
        Interruption::Failed(failure) => fail(&mut run, failure).await,
        Interruption::WorkspaceLost(text) | Interruption::NoNativeCalls(text) => {
            fail(&mut run, Failure::of_task(text)).await
        }
    };
    run.claim.end_item().await;
    leave(&mut run, &ending).await;
    let until = match &ending {
        RunOutcome::Postponed { until, .. } => Some(*until),
        RunOutcome::Unsaved => Some(Utc::now() + TimeDelta::minutes(UNSAVED_WAIT_MINUTES)),
        _ => None,
    };
    run.claim.services.release(&run.claim.lease, until).await;
    ending
}

/// Closes what the run has open. The container of one whose state or end could not be saved is
/// ahead of the store, so it stays for the process that resumes the run; that of one that another
/// worker has may be in use. That of a local task is removed, since nobody resumes it.
async fn leave(run: &mut Run, ending: &RunOutcome) {
    let is_resumed = run.claim.record.request.local.is_none();
    if is_resumed && *ending == RunOutcome::Unsaved {
        open::leave_container(run).await;
    } else if is_resumed && *ending == RunOutcome::Disowned {
        run.workspace.open = None;
    }
    closing::leave(run).await;
}

/// Saves the work for the next process. A local task is stopped instead: it ends with the command
/// that started it.
async fn interrupt(run: &mut Run) -> RunOutcome {
    if run.claim.record.request.local.is_some() {
        return conclude(run, Signal::StopAsked, RunOutcome::Interrupted).await;
    }
    save_or_log(run).await;
    rescue::keep_work(run).await;
    run.claim.note(Fact::Interrupted);
    RunOutcome::Interrupted
}

/// Puts a run off for a remote service: until the given time, or longer the more often it was put
/// off. Fails it where that has gone on for too long, and a local task at once.
async fn postpone(run: &mut Run, until: DateTime<Utc>, reason: &str) -> RunOutcome {
    let now = Utc::now();
    let since = *run.claim.record.waiting.parked_since.get_or_insert(now);
    if run.claim.record.request.local.is_some() {
        return fail(run, Failure::of_task(reason)).await;
    }
    if let Some(text) = rescue::attempts::given_up(&run.claim, since, now, reason) {
        return fail(run, Failure::of_task(text)).await;
    }
    let wait = run.claim.record.waiting.postpone(now);
    if until > wait {
        // Waiting until the announced time does not count as a failed retry.
        run.claim.record.waiting.parked_since = Some(until);
    }
    let until = until.max(wait);
    save_or_log(run).await;
    rescue::set_work_aside(run).await;
    let reason = run.claim.services.redactor.clean(reason).into_string();
    park(run, Parked { until, reason }).await
}

/// Sets the run aside until a person, the end of a pause of all runs or the clock resumes it.
async fn pause(run: &mut Run, by: PausedBy, order: Option<Box<Order>>) -> RunOutcome {
    if run.claim.state.is_set_aside() {
        return stay_set_aside(run, order).await;
    }
    let by_limit = match &by {
        PausedBy::Limit(text) if run.claim.record.request.local.is_some() => {
            return fail(run, Failure::of_task(text)).await;
        }
        PausedBy::Limit(_) => true,
        PausedBy::Person(_)
        | PausedBy::AllRuns
        | PausedBy::Question(_)
        | PausedBy::Objections(_)
        | PausedBy::Plan(_) => false,
    };
    save_or_log(run).await;
    let saved = rescue::set_work_aside(run).await;
    run.claim.record.waiting.paused = Some(Paused {
        by,
        at: Utc::now(),
        saved,
    });
    run.claim.record.waiting.set_aside += 1;
    if run.claim.state == State::Queued
        && let Err(interruption) = run.claim.step(Signal::Claimed).await
        && !matches!(interruption, Interruption::Cancelled)
    {
        tracing::error!(task = %run.claim.lease.task, "the run could not be paused: {interruption:?}");
    }
    let ending = RunOutcome::Paused { by_limit };
    let ending = match order {
        Some(order) => conclude_by(run, &order, Signal::PauseAsked, ending).await,
        None => conclude(run, Signal::PauseAsked, ending).await,
    };
    // What was not saved is not shown: another worker may have the run.
    if matches!(ending, RunOutcome::Paused { .. }) {
        show_set_aside(run).await;
    }
    ending
}

/// Leaves a run as it is that a pause met while its stage ended with a question to people. The
/// question stands in the record where a pause would: with the pause in its place nobody would be
/// asked, and the end of the pause would count as the answer. What people said before the pause is
/// no answer, either. A pause among other orders is left to the next visit, as they are.
async fn stay_set_aside(run: &mut Run, order: Option<Box<Order>>) -> RunOutcome {
    let origin = order.as_ref().map(|order| order.origin);
    if matches!(origin, Some(OrderSource::Request(_))) {
        // It counts as given after the comments that there are.
        run.inbox.thread_watcher.lock().await.look_at_comments().await;
    }
    // Taken before people are asked: what they say from then on comes after the pause.
    let Messages { orders, words } = run.inbox.mailbox.take();
    show_set_aside(run).await;
    if let Some(order) = order.filter(|_| orders.is_empty()) {
        let paused = commands::pause_set_aside(&mut run.claim, &mut run.reporter, &order, &words).await;
        if let Err(interruption) = paused {
            tracing::warn!(task = %run.claim.lease.task, "the pause could not be saved: {interruption:?}");
        }
    }
    RunOutcome::waiting_in(run.claim.state)
}

/// Suspends a run whose stage ended with a question to people.
pub(crate) async fn set_aside(mut run: Run) -> RunOutcome {
    // Nobody is asked about an item that another installation has finished, or works on.
    if let Some(interruption) = Box::pin(elsewhere::came_before(&run)).await {
        return finish(run, interruption).await;
    }
    show_set_aside(&mut run).await;
    closing::leave(&mut run).await;
    run.claim.services.release(&run.claim.lease, None).await;
    RunOutcome::waiting_in(run.claim.state)
}

/// Shows people that the run waits, and for what. Idempotent.
pub(crate) async fn show_set_aside(run: &mut Run) {
    let ReportTarget::Item { labels, .. } = &run.reporter.destination else {
        return;
    };
    let trigger = labels.trigger.clone();
    let told = async {
        if let Some(text) = replies::set_aside(&run.claim.record, &run.claim.services.settings, &trigger) {
            let name = run.claim.record.waiting.comment();
            run.reporter.say(&mut run.claim, &name, &text).await?;
        }
        let state = run.claim.state;
        if !run.reporter.is_shown(&run.claim, state) {
            run.reporter.show_final(&mut run.claim, state).await?;
            run.reporter.show_label(&mut run.claim, state, Carried::Unread).await?;
            run.claim.save().await?;
        }
        Ok::<(), Interruption>(())
    };
    if let Err(interruption) = told.await {
        tracing::warn!(task = %run.claim.lease.task, "it could not be shown on the item that the run waits: {interruption:?}");
    }
}

/// Ends a run that a person stopped; its work is pushed to a branch.
async fn stop(run: &mut Run, order: &Order) -> RunOutcome {
    if run.claim.record.request.local.is_none() {
        // Saved before anything is shown: the order may be gone after a crash, or when the forge
        // can be written to again.
        run.claim.record.ending = Some(EndWithoutFailure::by(order, &run.claim.services.redactor));
        run.claim.record.end(Utc::now());
        save_or_log(run).await;
        let saved = match shown_before(run) {
            Some(saved) => Some(saved),
            None => match rescue::rescue(run).await {
                Ok(saved) => saved.or_else(|| run.claim.record.delivered.pushed_before.clone()),
                Err(wait) => return park(run, wait).await,
            },
        };
        let trigger = match &run.reporter.destination {
            ReportTarget::Item { labels, .. } => labels.trigger.clone(),
            ReportTarget::Terminal { .. } => String::new(),
        };
        let text = replies::stopped(
            &order.by,
            saved.as_ref(),
            &run.claim.record,
            &run.claim.services.settings,
            &trigger,
        );
        if let Err(interruption) = show_end(run, State::Stopped, &text).await
            && let Some(ending) = until_shown(run, &interruption).await
        {
            // The next claim tells people: the comment may be posted, and the label not yet set.
            return ending;
        }
    }
    conclude_by(run, order, Signal::StopAsked, RunOutcome::Stopped).await
}

/// Ends a run whose item was closed, deleted or withdrawn, or whose wait expired. Its work is
/// pushed to a branch if the item is still open: whoever takes a label off asks for no more than
/// whoever writes `/agent stop`.
async fn withdraw(run: &mut Run, reason: &str, item_exists: bool) -> RunOutcome {
    let end = EndWithoutFailure::Withdrawn {
        reason: reason.to_owned(),
    };
    let saved = match decide(run, end, reason).await {
        Ok(saved) => saved,
        Err(wait) if item_exists => return park(run, wait).await,
        Err(wait) => return park_unseen(run, wait).await,
    };
    if item_exists && let ReportTarget::Item { labels, .. } = &run.reporter.destination {
        let (state, record) = (run.claim.state, &run.claim.record);
        let mut text = replies::withdrawn(reason, state, saved.as_ref(), record, &labels.trigger);
        used(&mut text, record, &run.claim.services.settings);
        if let Err(interruption) = show_end(run, State::Stopped, &text).await
            && let Some(ending) = until_shown(run, &interruption).await
        {
            return ending;
        }
    }
    conclude(run, Signal::StopAsked, RunOutcome::Stopped).await
}

/// Puts a run down whose item another installation has claimed. Nothing is posted or pushed: what
/// people see on the item is told by the other.
async fn give_way(run: &mut Run, until: DateTime<Utc>) -> RunOutcome {
    save_or_log(run).await;
    rescue::keep_work(run).await;
    let reason = "another installation has claimed the item on the forge".to_owned();
    run.claim.note(Fact::Postponed {
        until,
        reason: reason.clone(),
    });
    RunOutcome::Postponed { until, reason }
}

/// Ends a run whose item another installation finished. Nothing is pushed and no label is touched.
async fn overtaken(run: &mut Run) -> RunOutcome {
    let (end, reason) = (
        EndWithoutFailure::FinishedElsewhere,
        "another installation finished the item",
    );
    if let Err(wait) = decide(run, end, reason).await {
        return park_unseen(run, wait).await;
    }
    if let ReportTarget::Item { .. } = &run.reporter.destination {
        let text = comments::finished_elsewhere();
        let told = async {
            run.reporter.show_final(&mut run.claim, State::Stopped).await?;
            run.reporter.say(&mut run.claim, "final", &text).await
        };
        if let Err(interruption) = told.await
            && let Some(ending) = until_shown(run, &interruption).await
        {
            return ending;
        }
    }
    conclude(run, Signal::StopAsked, RunOutcome::Stopped).await
}

async fn fail(run: &mut Run, failure: Failure) -> RunOutcome {
    let failure = Failure {
        text: run.claim.services.redactor.clean(&failure.text).into_string(),
        ..failure
    };
    if run.claim.record.waiting.ended_at.is_none() {
        run.claim.note(Fact::Failed {
            reason: failure.in_words(),
        });
    }
    run.claim.record.failure = Some(failure.clone());
    run.claim.record.end(Utc::now());
    save_or_log(run).await;
    let saved = if run.claim.record.request.local.is_none() {
        match rescue::rescue(run).await {
            Ok(saved) => saved.or_else(|| run.claim.record.delivered.pushed_before.clone()),
            Err(wait) => return park(run, wait).await,
        }
    } else {
        None
    };
    if let Err(interruption) = show_failure(run, &failure, saved.as_ref()).await
        && let Some(ending) = until_shown(run, &interruption).await
    {
        // The failure is in the record, so the next claim only has to report it.
        return ending;
    }
    conclude(run, Signal::Broke, RunOutcome::Failed(failure.kind)).await
}

async fn show_failure(run: &mut Run, failure: &Failure, saved: Option<&SavedWork>) -> Result<(), Interruption> {
    let ReportTarget::Item { labels, .. } = &run.reporter.destination else {
        // The command shows the result so far, so that a late failure loses no work.
        if tokio::time::timeout(RESCUE_TIME, rescue::taking::take_result(run, Attempt::Last))
            .await
            .is_ok()
        {
            run.claim.save().await?;
        }
        return Ok(());
    };
    let trigger = labels.trigger.clone();
    let text = comments::failed(
        failure,
        &run.claim.record,
        &run.claim.services.settings,
        &trigger,
        saved,
    );
    show_end(run, State::Failed, &text).await
}
