//! An approval or a denial on the command line: whether it counts, and if not, why.

use chrono::Utc;
use uuid::Uuid;

use crate::agent::record::interruption::Interruption;
use crate::agent::record::{EndWithoutFailure, PausedBy, Record};
use crate::agent::text::waits::{decided, may_go_on, question_of};
use crate::approval::Word;
use crate::approval::digest::Beginning;
use crate::store::Run;
use crate::task::command::Command;
use crate::task::state::State;

/// Names the command by which the operator sees that something waits for approval.
const LOOK: &str = "`coding-agent status` shows when something waits for approval";

/// The operator's decision on the question that a run asks.
pub(super) struct Decision {
    is_yes: bool,
    digest: Option<Beginning>,
    /// The question; an earlier version asked for approval without one.
    question: Option<Uuid>,
}

impl Decision {
    /// Returns the decision that `command` is, on the question that `run` asks; `None` if it is
    /// another command.
    ///
    /// # Errors
    /// If the run asks for no approval: says what it does.
    pub(super) fn of(command: &Command, run: &Run) -> Result<Option<Self>, String> {
        let (is_yes, digest) = match command {
            Command::Approve(digest) => (true, digest.clone()),
            Command::Deny { digest, .. } => (false, digest.clone()),
            Command::Stop
            | Command::Pause
            | Command::Resume
            | Command::AutoApproveOff
            | Command::Budget(_)
            | Command::Help
            | Command::Unknown(_) => return Ok(None),
        };
        let record = Record::read(run).map_err(|unreadable| unreadable.to_string())?;
        let decision = Self {
            is_yes,
            digest,
            question: question_of(&record).map(|question| question.id),
        };
        match run.state {
            State::AwaitingApproval(_) => Ok(Some(decision)),
            _ => Err(decision.refused(&doing(run, &record))),
        }
    }

    /// Returns why the decision does not count, by the run as it is afterwards; `None` if it does.
    pub(super) fn refusal(&self, run: &Run) -> Option<String> {
        let record = match Record::read(run) {
            Ok(record) => record,
            Err(unreadable) => return Some(unreadable.to_string()),
        };
        if self.counts(&record) {
            return None;
        }
        let still_asks =
            matches!(run.state, State::AwaitingApproval(_)) && Interruption::of_decided_end(&record).is_none();
        let why = if still_asks {
            self.why_not(&record)
        } else {
            doing(run, &record)
        };
        Some(self.refused(&why))
    }

    /// Returns true if the question is decided in this way, by whomever.
    fn counts(&self, record: &Record) -> bool {
        let is_it = |question: Uuid| self.question == Some(question);
        if self.is_yes {
            let of_plan = record.planned.approval.as_ref().map(|approval| &approval.grant);
            let mut grants = of_plan.into_iter().chain(&record.delivered.approval);
            return grants.any(|grant| is_it(grant.id));
        }
        let is_ended = match &record.ending {
            Some(EndWithoutFailure::Stopped { command, .. }) => is_denial(command),
            Some(EndWithoutFailure::Withdrawn { .. } | EndWithoutFailure::FinishedElsewhere) | None => false,
        };
        is_ended || record.planned.denials.iter().any(|denial| is_it(denial.question))
    }

    /// Returns why a run does not take the decision that asks for approval still.
    fn why_not(&self, record: &Record) -> String {
        let word = Word {
            digest: self.digest.as_ref(),
            is_later: true,
        };
        let Some(question) = question_of(record).filter(|question| self.question == Some(question.id)) else {
            return "what waits for approval has changed since; `coding-agent status` shows it".to_owned();
        };
        match question.takes(word) {
            Err(refusal) => format!("{refusal}; `coding-agent status` shows the right one"),
            Ok(()) if decided(record).is_some() => {
                "it is decided already; `coding-agent status` shows what it waits for".to_owned()
            }
            Ok(()) => "what waits for approval has changed since; `coding-agent status` shows it".to_owned(),
        }
    }

    fn refused(&self, why: &str) -> String {
        let done = if self.is_yes { "approved" } else { "denied" };
        format!("nothing was {done}: {why}")
    }
}

fn is_denial(command: &str) -> bool {
    let Ok(command) = command.parse::<Command>();
    matches!(command, Command::Deny { .. })
}

/// Returns what a run does that takes no decision, and what people can do.
fn doing(run: &Run, record: &Record) -> String {
    let task = &run.task;
    let until = run.not_before.filter(|until| *until > Utc::now());
    let until = until.map(|until| until.format("%Y-%m-%d %H:%M UTC"));
    if run.state.is_final() {
        return format!(
            "it has ended ({}); `coding-agent status` lists the runs there are",
            run.state
        );
    }
    if Interruption::of_decided_end(record).is_some() {
        let shown = until.map_or_else(|| "soon".to_owned(), |until| format!("at {until}"));
        return format!("it has ended already, which is shown on the item {shown}");
    }
    if run.state.is_set_aside() {
        if may_go_on(run.state, record) {
            return "it waits for the end of the pause of all runs, not for approval; `coding-agent resume --all` ends \
                    that"
                .to_owned();
        }
        return match record.waiting.paused.as_ref().map(|paused| &paused.by) {
            Some(PausedBy::Limit(_)) => format!(
                "it waits for a larger budget, not for approval; `coding-agent budget {task} 500k` lets it go on with \
                 at most 500,000 more tokens"
            ),
            Some(PausedBy::Question(_)) => format!(
                "it waits for an answer, not for approval; answer on the item, or have it go on without an answer: \
                 `coding-agent resume {task}`"
            ),
            Some(PausedBy::Person(_) | PausedBy::AllRuns | PausedBy::Objections(_) | PausedBy::Plan(_)) | None => {
                format!("it is paused and does not wait for approval; `coding-agent resume {task}` resumes it")
            }
        };
    }
    match until {
        Some(until) => format!("it is put back until {until}; {LOOK}"),
        None if run.state == State::Queued => format!("it waits for a free worker; {LOOK}"),
        None => format!("it is at work ({}); {LOOK}", run.state),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::agent::record::HeldResult;
    use crate::agent::record::message::OrderSource;
    use crate::approval::Question;
    use crate::approval::digest::Digest;
    use crate::task::id::RunId;
    use crate::task::state::{Judged, Stage};

    const ASKS: State = State::AwaitingApproval(Judged::Result);

    fn run(state: State, record: &Record) -> Run {
        Run {
            id: RunId::new(),
            task: "github:acme/widgets#1".parse().unwrap(),
            title: "Greet".to_owned(),
            state,
            record: record.to_saved().unwrap(),
            created_at: Utc::now(),
            updated_at: Utc::now(),
            not_before: None,
        }
    }

    fn asks(question: &Question) -> Record {
        Record::set_aside_by(PausedBy::Objections(Box::new(HeldResult {
            question: Some(question.clone()),
            ..HeldResult::default()
        })))
    }

    fn denial() -> Command {
        Command::Deny {
            digest: None,
            reason: None,
        }
    }

    #[test]
    fn a_run_that_asks_for_no_approval_says_what_it_does() {
        let of = |run: &Run| Decision::of(&Command::Approve(None), run).err().unwrap();
        let paused = State::Paused(Stage::Working);
        let mut put_back = run(State::Working, &Record::default());
        put_back.not_before = Some(Utc::now() + TimeDelta::hours(1));
        let until = put_back.not_before.unwrap().format("%Y-%m-%d %H:%M UTC").to_string();
        let said = [
            of(&run(State::Queued, &Record::default())),
            of(&run(State::Verifying, &Record::default())),
            of(&put_back).replace(&until, "TIME"),
            of(&run(
                paused,
                &Record::set_aside_by(PausedBy::Person("@alice".to_owned())),
            )),
            of(&run(paused, &Record::set_aside_by(PausedBy::AllRuns))),
            of(&run(
                paused,
                &Record::set_aside_by(PausedBy::Limit("too much".to_owned())),
            )),
            of(&run(
                State::AwaitingAnswer,
                &Record::set_aside_by(PausedBy::Question("Red?".to_owned())),
            )),
            Decision::of(&denial(), &run(State::Planning, &Record::default()))
                .err()
                .unwrap(),
        ];
        insta::assert_snapshot!(said.join("\n"), @"
        nothing was approved: it waits for a free worker; `coding-agent status` shows when something waits for approval
        nothing was approved: it is at work (verifying); `coding-agent status` shows when something waits for approval
        nothing was approved: it is put back until TIME; `coding-agent status` shows when something waits for approval
        nothing was approved: it is paused and does not wait for approval; `coding-agent resume github:acme/widgets#1` resumes it
        nothing was approved: it waits for the end of the pause of all runs, not for approval; `coding-agent resume --all` ends that
        nothing was approved: it waits for a larger budget, not for approval; `coding-agent budget github:acme/widgets#1 500k` lets it go on with at most 500,000 more tokens
        nothing was approved: it waits for an answer, not for approval; answer on the item, or have it go on without an answer: `coding-agent resume github:acme/widgets#1`
        nothing was denied: it is at work (planning); `coding-agent status` shows when something waits for approval
        ");
    }

    #[test]
    fn a_decision_counts_by_what_the_run_has_of_it_and_not_because_the_run_goes_on() {
        let question = Question::new(Digest::of(&[b"what"]), "");
        let decision = |command: &Command| Decision::of(command, &run(ASKS, &asks(&question))).unwrap().unwrap();
        let (yes, no) = (decision(&Command::Approve(None)), decision(&denial()));

        let mut approved = Record::default();
        approved.delivered.approval = Some(question.granted("@alice"));
        let went_on = run(State::Delivering, &approved);
        assert_eq!(yes.refusal(&went_on), None);
        let refusal = "nothing was denied: it is at work (delivering); `coding-agent status` shows when something \
                       waits for approval";
        assert_eq!(no.refusal(&went_on).as_deref(), Some(refusal));

        let denied = Record {
            ending: Some(EndWithoutFailure::Stopped {
                command: "deny".to_owned(),
                by: "the operator".to_owned(),
                origin: OrderSource::Request(Uuid::nil()),
            }),
            ..Record::default()
        };
        let stopped = run(State::Stopped, &denied);
        assert_eq!(no.refusal(&stopped), None);
        let refusal = "nothing was approved: it has ended (stopped); `coding-agent status` lists the runs there are";
        assert_eq!(yes.refusal(&stopped).as_deref(), Some(refusal));

        let mut held = asks(&question);
        held.delivered.approval = Some(question.granted("@alice"));
        let held = run(ASKS, &held);
        assert_eq!(yes.refusal(&held), None);
        let refusal = "nothing was denied: it is decided already; `coding-agent status` shows what it waits for";
        assert_eq!(no.refusal(&held).as_deref(), Some(refusal));

        let other = Question::new(Digest::of(&[b"other"]), "");
        let refusal = "nothing was approved: what waits for approval has changed since; `coding-agent status` shows it";
        assert_eq!(yes.refusal(&run(ASKS, &asks(&other))).as_deref(), Some(refusal));
    }
}
