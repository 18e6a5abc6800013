//! Runs that no worker has claimed: people can still give commands, and some resume by themselves.

use chrono::{DateTime, TimeDelta, Utc};

use crate::agent::approval::answers;
use crate::agent::approval::plan_question::{self, Denied};
use crate::agent::claim::Claim;
use crate::agent::commands;
use crate::agent::inbox::command_table::{Effect, Standing, WaitsOn, effect};
use crate::agent::inbox::mailbox::Messages;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::{Order, UserMessage};
use crate::agent::record::outcome::RunOutcome;
use crate::agent::record::{EndWithoutFailure, PausedBy, Record};
use crate::agent::reporter::{Carried, Reporter};
use crate::agent::run::Run;
use crate::agent::stages::finishing;
use crate::agent::text::replies;
use crate::agent::workspace::open;
use crate::task::state::{Signal, State};

/// Result of a visit to a waiting run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Visited {
    /// The run waits as before.
    Stays,
    /// The run is due now.
    GoesOn,
    /// Its end was decided before, and is shown on the item at this time.
    EndsAt(DateTime<Utc>),
    Ended(RunOutcome),
}

impl std::fmt::Display for Visited {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Stays => formatter.write_str("it waits"),
            Self::GoesOn => formatter.write_str("it goes on with the next free worker"),
            Self::EndsAt(shown) => {
                let shown = shown.format("%Y-%m-%d %H:%M UTC");
                write!(formatter, "it has ended already, which is shown on the item at {shown}")
            }
            Self::Ended(ending) => write!(formatter, "{ending}"),
        }
    }
}

/// Processes messages to a waiting run, and resumes or ends it. A run that is postponed until
/// `not_before` resumes earlier only by a command, and one whose end cannot be shown until then not
/// at all. The lease is released in every case.
pub async fn attend(mut run: Run, not_before: Option<DateTime<Utc>>) -> Visited {
    let until = not_before.filter(|until| *until > Utc::now());
    if let Some(end) = Interruption::of_decided_end(&run.claim.record) {
        if let Some(shown) = until {
            // Another try before that time would only use up more of the forge's limit.
            run.claim.services.release(&run.claim.lease, until).await;
            return Visited::EndsAt(shown);
        }
        return Visited::Ended(finishing::show_decided(run, end).await);
    }
    let put_back = until.filter(|_| !run.claim.state.is_set_aside());
    let thread = &run.claim.record.thread;
    let (heard, seen) = (thread.heard.clone(), thread.seen.clone());
    let wants_answer = run.claim.state == State::AwaitingAnswer;
    run.inbox.thread_watcher.lock().await.visit(heard, seen, wants_answer);
    run.inbox.listen_now().await;
    match run.inbox.mailbox.take_verdict() {
        // It is set aside already; a person is told so, a pause of all runs needs no answer.
        Some(Interruption::Paused { order: None, .. }) if run.claim.state.is_set_aside() => {}
        Some(Interruption::Paused { order: Some(order), .. }) if run.claim.state.is_set_aside() => {
            let answered = follow_order(&mut run.claim, &mut run.reporter, &order).await;
            log(&run.claim, answered.map(|_| ()));
        }
        Some(verdict) => return Visited::Ended(finishing::finish(run, verdict).await),
        None => {}
    }
    if is_expired(&run.claim) {
        let days = run.claim.services.settings.steering.expire_days;
        let verdict = Interruption::Withdrawn {
            reason: format!("nobody let it go on for {days} days"),
            item_exists: true,
        };
        return Visited::Ended(finishing::finish(run, verdict).await);
    }
    let goes_on = match follow(&mut run, put_back.is_some()).await {
        Ok(goes_on) => goes_on,
        Err(interruption) => return Visited::Ended(finishing::finish(run, interruption).await),
    };
    if !goes_on && run.claim.state.is_set_aside() && !run.reporter.is_shown(&run.claim, run.claim.state) {
        // The process that paused the run was killed before it could show that.
        open::remove_left_container(&run.claim).await;
        if run.reporter.finds_it_finished(&run.claim).await {
            return Visited::Ended(finishing::finish(run, Interruption::FinishedElsewhere).await);
        }
        finishing::show_set_aside(&mut run).await;
    } else if !goes_on && run.claim.state.is_set_aside() {
        ask_anew(&mut run).await;
    }
    // The next visit has a watcher of its own.
    let seen = run.inbox.thread_watcher.lock().await.leave();
    if let Err(interruption) = run.claim.save_visit(seen).await {
        tracing::warn!(task = %run.claim.lease.task, "it could not be saved what was seen of the item: {interruption:?}");
    }
    let put_back = put_back.filter(|_| !goes_on);
    run.claim.services.release(&run.claim.lease, put_back).await;
    if goes_on { Visited::GoesOn } else { Visited::Stays }
}

/// Ends a waiting run whose visit was ended by a bug of this program, because another visit would
/// most likely end in the same way. The lease is released.
pub async fn end_broken(run: Run) -> Visited {
    Visited::Ended(finishing::finish(run, Interruption::Failed(Run::fault())).await)
}

/// Puts the question of a waiting plan again if what it covers has changed, or if the process that
/// put it was killed before people could read it.
async fn ask_anew(run: &mut Run) {
    match plan_question::renew_if_changed(run).await {
        Ok(is_renewed) if is_renewed || plan_question::is_unasked(&run.claim) => finishing::show_set_aside(run).await,
        Ok(_) => {}
        Err(interruption) => log(&run.claim, Err(interruption)),
    }
}

/// Executes commands; returns whether the run resumes.
async fn follow(run: &mut Run, is_put_back: bool) -> Result<bool, Interruption> {
    let Messages { orders, words } = run.inbox.mailbox.take();
    let mut goes_on = !run.claim.state.is_set_aside() && !is_put_back;
    for order in orders {
        goes_on |= follow_order(&mut run.claim, &mut run.reporter, &order).await?;
    }
    // Answered in a process that was killed before it could resume the run.
    goes_on |= answers::is_answered(&run.claim);
    // The worker that resumes the run reads the text again, and passes it to the model.
    goes_on |= run.claim.state == State::AwaitingAnswer && words.iter().any(UserMessage::is_answer);
    let is_held = run.claim.services.store.is_paused().await?;
    goes_on |= was_paused_with_all(run.claim.state, &run.claim.record) && !is_held;
    if goes_on && !is_held && run.claim.state.is_set_aside() {
        go_on(&mut run.claim, &mut run.reporter).await?;
        return Ok(true);
    }
    Ok(goes_on && !is_held)
}

/// Executes one order; returns whether the run resumes because of it.
///
/// # Errors
/// [`Interruption::Stopped`] if the order ends the run.
async fn follow_order(claim: &mut Claim, reporter: &mut Reporter, order: &Order) -> Result<bool, Interruption> {
    let stopped = || Interruption::Stopped { order: order.clone() };
    let on = WaitsOn::of(claim.state, &claim.record);
    let all_paused = claim.services.store.is_paused().await?;
    let standing = Standing::Waits { on, all_paused };
    let (resumes, mut answer) = match effect(&order.command, standing) {
        Effect::Answer(page) => (false, page),
        Effect::Resume(page) => (true, page),
        Effect::ResumeWithAll(page) => {
            now_paused_by(claim, PausedBy::AllRuns);
            (false, page)
        }
        Effect::Allow { tokens, resumes } => (resumes, commands::allow(claim, tokens)),
        Effect::Approve(given) => answers::hear_approval(claim, order, given),
        Effect::Deny(reason) => match answers::hear_denial(claim, order, reason) {
            Ok(Denied::Ends) => {
                // Where it cannot be shown yet, nobody can approve what was denied meanwhile.
                claim.record.ending = Some(EndWithoutFailure::by(order, &claim.services.redactor));
                return Err(stopped());
            }
            Ok(Denied::GoesOn(answer)) => (true, answer),
            Err(answer) => (false, answer),
        },
        Effect::Stop => return Err(stopped()),
        Effect::EndAutomaticApproval => (false, commands::end_automatic_approval(claim, &order.by).await?),
        // It waits already, so there is nothing to set aside.
        Effect::Pause => {
            now_paused_by(claim, PausedBy::Person(order.by.clone()));
            (false, replies::ALREADY_PAUSED.into())
        }
    };
    if resumes && all_paused && on == WaitsOn::Approval {
        answer.own(replies::ALL_PAUSED);
    }
    commands::answer(claim, reporter, order, &answer).await?;
    Ok(resumes)
}

/// Notes that a run which only a pause keeps from going on waits for a person's word, or for the
/// end of the pause of all runs, in the place of the other.
fn now_paused_by(claim: &mut Claim, by: PausedBy) {
    let (State::Paused(_), Some(paused)) = (claim.state, &mut claim.record.waiting.paused) else {
        return;
    };
    let is_other = matches!(
        (&paused.by, &by),
        (PausedBy::AllRuns, PausedBy::Person(_)) | (PausedBy::Person(_), PausedBy::AllRuns)
    );
    if is_other {
        paused.by = by;
    }
}

/// Returns the run to the stage that it left.
async fn go_on(claim: &mut Claim, reporter: &mut Reporter) -> Result<(), Interruption> {
    let signal = match claim.state {
        State::AwaitingAnswer => Signal::Answered,
        State::AwaitingApproval(_) => answers::signal(claim),
        _ => Signal::Resumed,
    };
    claim.record.waiting.paused = None;
    claim.step(signal).await?;
    let shown = reporter.show_label(claim, claim.state, Carried::Unread).await;
    log(claim, shown);
    claim.save().await
}

/// Returns true if the run was set aside by a pause of all runs and by nothing else. One that has
/// asked people something waits for their answer: the end of a pause is none.
fn was_paused_with_all(state: State, record: &Record) -> bool {
    let by_all = matches!(&record.waiting.paused, Some(paused) if paused.by == PausedBy::AllRuns);
    by_all && matches!(state, State::Paused(_))
}

fn is_expired(claim: &Claim) -> bool {
    let days = TimeDelta::days(i64::from(claim.services.settings.steering.expire_days));
    let since = claim.record.waiting.paused.as_ref().map(|paused| paused.at);
    claim.state.is_set_aside() && since.is_some_and(|since| Utc::now() - since > days)
}

fn log(claim: &Claim, outcome: Result<(), Interruption>) {
    if let Err(interruption) = outcome {
        tracing::warn!(task = %claim.lease.task, "people could not be told: {interruption:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::record::Paused;
    use crate::task::state::{Judged, Stage};

    #[test]
    fn the_end_of_a_pause_of_all_runs_answers_no_question() {
        let paused = |by| {
            let mut record = Record::default();
            record.waiting.paused = Some(Paused {
                by,
                at: DateTime::UNIX_EPOCH,
                saved: None,
            });
            record
        };
        let set_aside = [
            State::Paused(Stage::Working),
            State::AwaitingAnswer,
            State::AwaitingApproval(Judged::Plan),
            State::AwaitingApproval(Judged::Result),
        ];
        let goes_on = set_aside.map(|state| was_paused_with_all(state, &paused(PausedBy::AllRuns)));
        assert_eq!(goes_on, [true, false, false, false]);
        let by_alice = paused(PausedBy::Person("alice".to_owned()));
        assert!(!was_paused_with_all(State::Paused(Stage::Working), &by_alice));
    }
}
