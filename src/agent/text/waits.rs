//! A run's wait for people: for what, for whose answer, until when, and whether it may go on.

use chrono::{DateTime, TimeDelta, Utc};
use serde::Serialize;

use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::OPERATOR;
use crate::agent::record::{LastWord, PausedBy, Record};
use crate::approval::Question;
use crate::task::state::{Judged, State};

/// The people who can answer in the thread.
const WRITERS: &str = "somebody who may write to the repository";

/// A run that waits for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Wait {
    /// The event that ends the wait, such as "approval of its plan".
    pub what: &'static str,
    /// The people whose answer counts.
    pub whom: &'static str,
    /// When the run is closed without it; `None` for a pause of all runs.
    pub until: Option<DateTime<Utc>>,
    /// The beginning of the digest to approve, where an approval is waited for.
    pub digest: Option<String>,
}

/// Returns what a run in `state` waits for; `None` if it waits for nobody, as one whose end is
/// decided and only has to be shown. It is closed after `expire_days`.
pub fn wait_of(state: State, record: &Record, expire_days: u32) -> Option<Wait> {
    if Interruption::of_decided_end(record).is_some() {
        return None;
    }
    let paused = record.waiting.paused.as_ref().filter(|_| state.is_set_aside())?;
    let since = waits_since(state, record);
    let (what, whom) = match &paused.by {
        _ if since.is_none() => ("the end of the pause of all runs", OPERATOR),
        _ if paused_since(state, record).is_some() => ("the command to resume it", WRITERS),
        PausedBy::Plan(_) => ("approval of its plan", WRITERS),
        PausedBy::Objections(_) => ("approval of its result", WRITERS),
        PausedBy::Question(_) => ("an answer", WRITERS),
        PausedBy::Limit(_) => ("a larger budget", WRITERS),
        PausedBy::Person(_) => ("the command to resume it", WRITERS),
        PausedBy::AllRuns => ("the end of the pause of all runs", OPERATOR),
    };
    let question = question_of(record).filter(|_| !is_decided(state, record));
    Some(Wait {
        what,
        whom,
        until: since.map(|since| since + TimeDelta::days(expire_days.into())),
        digest: question.map(|question| question.digest.short().to_owned()),
    })
}

/// Returns since when a run waits for people, who have so many days from then on; `None` if it
/// waits for nobody, or for nothing but the end of a pause of all runs.
pub fn waits_since(state: State, record: &Record) -> Option<DateTime<Utc>> {
    let paused = record.waiting.paused.as_ref()?;
    let waits = state.is_set_aside() && !may_go_on(state, record);
    waits.then(|| paused_since(state, record).unwrap_or(paused.at))
}

/// Returns true if a run that is set aside goes on unless all runs are paused: by such a pause it
/// was set aside, or people let it go on since. The end of a pause alone answers no question.
pub fn may_go_on(state: State, record: &Record) -> bool {
    let waiting = &record.waiting;
    let was_let = waiting.last_word == Some(LastWord::GoOn);
    match state {
        State::Paused(_) => matches!(&waiting.paused, Some(paused) if paused.by == PausedBy::AllRuns),
        State::AwaitingAnswer => was_let,
        State::AwaitingApproval(_) if is_decided(state, record) => {
            !matches!(waiting.last_word, Some(LastWord::Pause { .. }))
        }
        // One that an earlier version set aside has no question, and is asked properly then.
        State::AwaitingApproval(_) => was_let && question_of(record).is_none(),
        _ => false,
    }
}

/// Returns since when a person's pause alone keeps a run that has its answer or its decision.
fn paused_since(state: State, record: &Record) -> Option<DateTime<Utc>> {
    match &record.waiting.last_word {
        Some(LastWord::Pause { at, answers }) if is_decided(state, record) || !answers.is_empty() => Some(*at),
        _ => None,
    }
}

/// Returns the open question of a run, whether a plan or a result is approved, if it has one.
pub fn question_of(record: &Record) -> Option<&Question> {
    match &record.waiting.paused.as_ref()?.by {
        PausedBy::Plan(held) => Some(&held.question),
        PausedBy::Objections(held) => held.question.as_ref(),
        PausedBy::Person(_) | PausedBy::AllRuns | PausedBy::Limit(_) | PausedBy::Question(_) => None,
    }
}

/// The decision on an open question, by the name of the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided<'a> {
    Approved { by: &'a str },
    Denied { by: &'a str },
}

/// Returns true if a run that waits for a decision has one.
pub fn is_decided(state: State, record: &Record) -> bool {
    match state {
        State::AwaitingApproval(Judged::Plan) => decided(record).is_some(),
        // An earlier version put no question.
        State::AwaitingApproval(Judged::Result) => record.delivered.approval.is_some(),
        _ => false,
    }
}

/// Returns the decision on the open question of a run, if there is one: the run goes on with it
/// when the pause of all runs ends.
pub fn decided(record: &Record) -> Option<Decided<'_>> {
    let question = question_of(record)?;
    // A denial takes an approval back.
    let denials = &record.planned.denials;
    if let Some(denial) = denials.iter().find(|denial| denial.question == question.id) {
        return Some(Decided::Denied { by: &denial.by });
    }
    let of_plan = record.planned.approval.as_ref().map(|approval| &approval.grant);
    let grants = of_plan.into_iter().chain(&record.delivered.approval);
    let mut given = grants.filter(|grant| grant.id == question.id);
    given.next().map(|grant| Decided::Approved { by: &grant.by })
}
