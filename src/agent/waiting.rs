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
use crate::agent::record::sections::WaitingRecord;
use crate::agent::record::{EndWithoutFailure, LastWord, Paused, PausedBy};
use crate::agent::reporter::{Carried, Reporter};
use crate::agent::run::Run;
use crate::agent::stages::finishing;
use crate::agent::text::replies;
use crate::agent::text::waits::{may_go_on, waits_since};
use crate::plain::counted;
use crate::task::command::Command;
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
            Self::Ended(ending) => formatter.write_str(&ending.with_reason()),
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
    if run.claim.state.is_set_aside() {
        run.inbox.mailbox.note_set_aside();
    }
    run.inbox.listen_now().await;
    if let Some(verdict) = run.inbox.mailbox.take_verdict() {
        return Visited::Ended(finishing::finish(run, verdict).await);
    }
    // A question for approval that has lapsed is not answered any more.
    if matches!(run.claim.state, State::AwaitingApproval(_)) && is_expired(&run.claim) {
        return end_expired(run).await;
    }
    let next = match follow(&mut run, put_back.is_some()).await {
        Ok(next) => next,
        Err(interruption) => return Visited::Ended(finishing::finish(run, interruption).await),
    };
    if next == Next::Waits && is_expired(&run.claim) {
        return end_expired(run).await;
    }
    let goes_on = next == Next::GoesOn;
    if !goes_on && run.claim.state.is_set_aside() && !run.reporter.is_shown(&run.claim, run.claim.state) {
        // The process that paused the run was killed before it could show that, or the forge did
        // not take it. A container that it left stays: it may have the only copy of the work.
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

/// Ends a run that people had their time to let go on.
async fn end_expired(run: Run) -> Visited {
    let days = counted(run.claim.services.settings.steering.expire_days, "day");
    let verdict = Interruption::Withdrawn {
        reason: format!("nobody let it go on for {days}"),
        item_exists: true,
    };
    Visited::Ended(finishing::finish(run, verdict).await)
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

/// The decision about a run that waits, once all is heard that people said to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    GoesOn,
    /// It would go on if not all runs were paused.
    Held,
    Waits,
}

/// Executes commands, and has the run go on if it may.
async fn follow(run: &mut Run, is_put_back: bool) -> Result<Next, Interruption> {
    let Messages { orders, words } = run.inbox.mailbox.take();
    let mut is_due = !is_put_back;
    for order in orders {
        is_due |= follow_order(&mut run.claim, &mut run.reporter, &order, &words).await?;
    }
    let claim = &mut run.claim;
    let goes_on = if claim.state.is_set_aside() {
        may_go_on(claim.state, &claim.record) || has_answer(claim.state, &claim.record.waiting, &words)
    } else {
        is_due
    };
    if !goes_on {
        return Ok(Next::Waits);
    }
    if claim.services.store.is_paused().await? {
        return Ok(Next::Held);
    }
    if claim.state.is_set_aside() {
        go_on(claim, &mut run.reporter).await?;
    }
    Ok(Next::GoesOn)
}

/// Executes one order; returns whether the run resumes because of it. What it has the run do is
/// noted in the record, which is saved before people are told: a pause of all runs may keep it from
/// that for long, and a kill until the next visit.
///
/// # Errors
/// [`Interruption::Stopped`] if the order ends the run.
async fn follow_order(
    claim: &mut Claim,
    reporter: &mut Reporter,
    order: &Order,
    words: &[UserMessage],
) -> Result<bool, Interruption> {
    let stopped = || Interruption::Stopped { order: order.clone() };
    let on = WaitsOn::of(claim.state, &claim.record);
    let all_paused = claim.services.store.is_paused().await?;
    let standing = Standing::Waits { on, all_paused };
    let (resumes, mut answer) = match effect(&order.command, standing) {
        Effect::Answer(page) => (false, page),
        Effect::Resume(page) => (true, page),
        Effect::Allow { tokens, resumes } => (resumes, commands::allow(claim, tokens)),
        Effect::Approve(given) => answers::hear_approval(claim, order, given),
        Effect::Deny { digest, reason } => match answers::hear_denial(claim, order, digest, reason) {
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
            commands::pause_set_aside(claim, reporter, order, words).await?;
            return Ok(false);
        }
    };
    // Who approves what is decided says nothing new, also of a pause since then.
    let is_repeated = on == WaitsOn::Decided && matches!(order.command, Command::Approve(_));
    if resumes && !is_repeated {
        let_go_on(claim.state, &mut claim.record.waiting);
    }
    if resumes && matches!(claim.record.waiting.last_word, Some(LastWord::Pause { .. })) {
        answer.own(replies::PAUSED_SINCE);
    } else if resumes && all_paused && order.command != Command::Resume {
        answer.own(replies::ALL_PAUSED);
    }
    commands::answer(claim, reporter, order, &answer).await?;
    Ok(resumes)
}

/// Notes that people let a run go on that is set aside: from now on only a pause of all runs keeps
/// it.
fn let_go_on(state: State, waiting: &mut WaitingRecord) {
    if matches!(state, State::Paused(_)) {
        let pause = || Paused {
            by: PausedBy::AllRuns,
            at: Utc::now(),
            saved: None,
        };
        waiting.paused.get_or_insert_with(pause).by = PausedBy::AllRuns;
    } else if state.is_set_aside() {
        // The question stays: it says what was approved, and whether anything was.
        waiting.last_word = Some(LastWord::GoOn);
    }
}

/// Returns true if people answered the question of the run, and nobody has paused it since. The
/// worker that resumes it reads the text again, and passes it to the model.
fn has_answer(state: State, waiting: &WaitingRecord, words: &[UserMessage]) -> bool {
    let counts = |words: &UserMessage| match &waiting.last_word {
        Some(LastWord::Pause { answers, .. }) => words.is_answer() && !words.heard.is_in(answers),
        Some(LastWord::GoOn) | None => words.is_answer(),
    };
    state == State::AwaitingAnswer && words.iter().any(counts)
}

/// Returns the run to the stage that it left.
async fn go_on(claim: &mut Claim, reporter: &mut Reporter) -> Result<(), Interruption> {
    let signal = match claim.state {
        State::AwaitingAnswer => Signal::Answered,
        State::AwaitingApproval(_) => answers::signal(claim),
        _ => Signal::Resumed,
    };
    claim.record.waiting.paused = None;
    claim.record.waiting.last_word = None;
    claim.step(signal).await?;
    let shown = reporter.show_label(claim, claim.state, Carried::Unread).await;
    log(claim, shown);
    claim.save().await
}

/// Returns true if people had their time to let the run go on. Of what a pause of all runs alone
/// keeps nobody could.
fn is_expired(claim: &Claim) -> bool {
    let days = TimeDelta::days(i64::from(claim.services.settings.steering.expire_days));
    waits_since(claim.state, &claim.record).is_some_and(|since| Utc::now() - since > days)
}

fn log(claim: &Claim, outcome: Result<(), Interruption>) {
    if let Err(interruption) = outcome {
        tracing::warn!(task = %claim.lease.task, "people could not be told: {interruption:?}");
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::agent::commands::note_pause;
    use crate::agent::record::message::{HeardComment, OrderSource, SeenComment};
    use crate::agent::record::{HeldResult, Record};
    use crate::agent::text::waits::wait_of;
    use crate::approval::Question;
    use crate::approval::digest::Digest;
    use crate::forge::{CommentKey, CommentKind};
    use crate::task::state::{Judged, Stage};

    const PAUSED: State = State::Paused(Stage::Working);
    const RESULT_WAITS: State = State::AwaitingApproval(Judged::Result);

    fn comment(number: u64) -> HeardComment {
        let kind = CommentKind::Comment;
        HeardComment {
            key: CommentKey { kind, number },
            fingerprint: Uuid::nil(),
        }
    }

    fn pause(origin: OrderSource) -> Order {
        Order {
            command: Command::Pause,
            by: "@bob".to_owned(),
            origin,
        }
    }

    fn words(number: u64) -> UserMessage {
        UserMessage {
            heard: comment(number),
            ..UserMessage::of_alice(number, "Blue, please.")
        }
    }

    #[test]
    fn the_end_of_a_pause_of_all_runs_answers_no_question() {
        let set_aside_in = [
            PAUSED,
            State::AwaitingAnswer,
            State::AwaitingApproval(Judged::Plan),
            RESULT_WAITS,
        ];
        let goes_on = set_aside_in.map(|state| may_go_on(state, &Record::set_aside_by(PausedBy::AllRuns)));
        assert_eq!(goes_on, [true, false, false, false]);
        assert!(!may_go_on(
            PAUSED,
            &Record::set_aside_by(PausedBy::Person("alice".to_owned()))
        ));
    }

    #[test]
    fn of_what_people_say_to_a_run_that_is_set_aside_the_last_counts() {
        for (state, by) in [
            (PAUSED, PausedBy::Person("@alice".to_owned())),
            (PAUSED, PausedBy::Limit("the budget is used up".to_owned())),
            (State::AwaitingAnswer, PausedBy::Question("Red or blue?".to_owned())),
        ] {
            let mut record = Record::set_aside_by(by);
            assert_eq!(waits_since(state, &record), Some(DateTime::UNIX_EPOCH));
            for _ in 0..2 {
                assert!(!may_go_on(state, &record), "{record:?}");
                let_go_on(state, &mut record.waiting);
                assert!(may_go_on(state, &record), "{record:?}");
                let wait = wait_of(state, &record, 30).unwrap();
                assert_eq!((wait.what, wait.until), ("the end of the pause of all runs", None));
                let order = pause(OrderSource::Request(Uuid::nil()));
                note_pause(state, &mut record, &order, &[]);
            }
        }
    }

    #[test]
    fn a_pause_holds_a_result_that_was_approved_before_and_its_time_begins_anew() {
        let question = Question::new(Digest::of(&[b"what"]), "");
        let mut record = Record::set_aside_by(PausedBy::Objections(Box::new(HeldResult {
            question: Some(question.clone()),
            ..HeldResult::default()
        })));
        let_go_on(RESULT_WAITS, &mut record.waiting);
        assert!(!may_go_on(RESULT_WAITS, &record), "nobody has approved it");
        record.delivered.approval = Some(question.granted("@alice"));
        assert!(may_go_on(RESULT_WAITS, &record));
        let now = Utc::now();
        let order = pause(OrderSource::Comment(comment(2)));
        note_pause(RESULT_WAITS, &mut record, &order, &[]);
        assert!(!may_go_on(RESULT_WAITS, &record));
        let wait = wait_of(RESULT_WAITS, &record, 30).unwrap();
        assert_eq!((wait.what, wait.digest), ("the command to resume it", None));
        assert!(waits_since(RESULT_WAITS, &record).is_some_and(|since| since >= now));
        assert_eq!(WaitsOn::of(RESULT_WAITS, &record), WaitsOn::Decided);
        let_go_on(RESULT_WAITS, &mut record.waiting);
        assert!(may_go_on(RESULT_WAITS, &record));
    }

    #[test]
    fn an_answer_counts_unless_somebody_paused_the_run_after_it() {
        let asks = State::AwaitingAnswer;
        let mut record = Record::default();
        let all = [words(1), words(3)];
        assert!(has_answer(asks, &record.waiting, &all));
        note_pause(asks, &mut record, &pause(OrderSource::Comment(comment(2))), &all);
        assert!(!has_answer(asks, &record.waiting, &all[..1]));
        assert!(has_answer(asks, &record.waiting, &all));
        note_pause(asks, &mut record, &pause(OrderSource::Request(Uuid::nil())), &all);
        assert!(!has_answer(asks, &record.waiting, &all));
        let mut edited = words(1);
        edited.heard.fingerprint = Uuid::from_u128(1);
        assert!(has_answer(asks, &record.waiting, &[edited]));
        assert!(!has_answer(PAUSED, &WaitingRecord::default(), &all));
        // As it is saved.
        let saved = serde_json::to_value(&record.waiting).unwrap();
        let read: WaitingRecord = serde_json::from_value(saved).unwrap();
        assert_eq!(read.last_word, record.waiting.last_word);
    }

    #[test]
    fn a_pause_holds_the_answers_that_were_heard_before_also_where_the_thread_cannot_be_read() {
        let asks = State::AwaitingAnswer;
        let mut record = Record::set_aside_by(PausedBy::Question("Red or blue?".to_owned()));
        let seen = |has_words| SeenComment {
            fingerprint: Uuid::nil(),
            has_words,
        };
        // One that the model has read, two answers, and what nobody reads.
        let numbers = [(1, true), (2, true), (4, true), (5, false)];
        record.thread.seen = numbers.map(|(number, said)| (comment(number).key, seen(said))).into();
        record.thread.heard.insert(comment(1).key, Uuid::nil());
        let held = |record: &mut Record, order: &Order| {
            note_pause(asks, record, order, &[]);
            [2, 4].map(|number| !has_answer(asks, &record.waiting, &[words(number)]))
        };
        let by_request = pause(OrderSource::Request(Uuid::nil()));
        assert_eq!(held(&mut record, &by_request), [true, true]);
        let Some(LastWord::Pause { answers, .. }) = &record.waiting.last_word else {
            panic!("{record:?}");
        };
        assert!(answers.keys().eq(&[2, 4].map(|number| comment(number).key)));
        let by_comment = pause(OrderSource::Comment(comment(3)));
        assert_eq!(held(&mut record, &by_comment), [true, false]);
    }
}
