//! The actions of people, which go the ways of commands of the command line, under the name of the
//! user.

use std::fmt;

use axum::http::StatusCode;
use chrono::{TimeDelta, Utc};

use super::Web;
use super::access::Visitor;
use super::problem::Problem;
use crate::agent::record::Record;
use crate::agent::text::waits::{Decided, decided, may_go_on};
use crate::agent::waiting::Visited;
use crate::approval::digest::Beginning;
use crate::evaluation::stored;
use crate::journal::fact::{Fact, Subject};
use crate::plain::one_line;
use crate::service::attending::CommandOutcome;
use crate::service::automatic_approval::NotStarted;
use crate::store::Run;
use crate::task::command::{Command, tokens};
use crate::task::id::RunId;
use crate::task::state::State;

/// Most characters of a reason.
const LONGEST_REASON: usize = 2_000;

/// The details of an action.
#[derive(Debug, Clone, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Details {
    /// Of `approve` and `deny`: the beginning of the digest that was looked at, 8 to 64 hexadecimal
    /// digits. With it the decision counts for nothing else that may wait by now.
    pub(super) digest: Option<String>,
    /// Of `deny`: the reason.
    pub(super) reason: Option<String>,
    /// Of `budget`: tokens from now on, such as 500000, "500k" or "2M".
    pub(super) tokens: Option<Tokens>,
}

/// A number of tokens.
#[derive(Debug, Clone, serde::Deserialize, schemars::JsonSchema)]
#[serde(untagged, expecting = "`tokens` must be a number such as 500000, \"500k\" or \"2M\"")]
pub(super) enum Tokens {
    Number(u64),
    /// As it is written behind `/agent budget`.
    Text(String),
}

/// The names of the actions on a run.
pub(super) const ACTIONS: [&str; 6] = ["pause", "resume", "stop", "approve", "deny", "budget"];

/// The outcome of an action on a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ActionOutcome {
    /// The worker that holds the run was told.
    Passed,
    /// It counts, and the run goes on with it when the pause of all runs ends.
    Held,
    /// The decision does not count.
    Refused,
    /// The run was not resumed.
    NotResumed,
    Visited(Visited),
}

impl ActionOutcome {
    /// Returns the outcome of a command, by state and record of the run, which waits after it.
    fn of_waiting(command: &Command, by: &str, state: State, record: &Record) -> Self {
        // But for the pause of all runs it would have gone on.
        let is_held = may_go_on(state, record);
        let is_mine = match decided(record) {
            Some(Decided::Approved { by: person }) => matches!(command, Command::Approve(_)) && person == by,
            Some(Decided::Denied { by: person }) => matches!(command, Command::Deny { .. }) && person == by,
            None => false,
        };
        match command {
            Command::Approve(_) | Command::Deny { .. } if is_held && is_mine => Self::Held,
            Command::Approve(_) | Command::Deny { .. } => Self::Refused,
            Command::Resume | Command::Budget(_) if is_held => Self::Held,
            Command::Resume => Self::NotResumed,
            Command::Stop
            | Command::Pause
            | Command::Budget(_)
            | Command::AutoApproveOff
            | Command::Help
            | Command::Unknown(_) => Self::Visited(Visited::Stays),
        }
    }

    /// Returns the name of an outcome that a page has to tell, since it is not the usual one of the
    /// action; one of [`UNUSUAL`].
    pub(super) fn unusual(&self) -> Option<&'static str> {
        match self {
            Self::Held => Some("held"),
            Self::Refused => Some("refused"),
            Self::NotResumed => Some("not_resumed"),
            Self::Visited(Visited::EndsAt(_)) => Some("ended"),
            Self::Passed | Self::Visited(Visited::Stays | Visited::GoesOn | Visited::Ended(_)) => None,
        }
    }
}

/// The outcomes that are not the usual ones.
pub(super) const UNUSUAL: [&str; 4] = ["held", "refused", "not_resumed", "ended"];

/// Writes the outcome in a few words.
impl fmt::Display for ActionOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Passed => formatter.write_str("the worker was told, and does so at its next safe point"),
            Self::Held => formatter.write_str("it counts; all runs are paused, and it goes on when that ends"),
            Self::Refused => {
                formatter.write_str("it does not count: what waits is something else, or is decided already")
            }
            Self::NotResumed => formatter.write_str("it waits as before"),
            Self::Visited(visited) => write!(formatter, "{visited}"),
        }
    }
}

/// Returns the command that an action is.
fn command(action: &str, details: Details) -> Result<Command, Problem> {
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let named = |digest: Option<String>| {
        let digest = given(digest).map(|digest| digest.trim().parse::<Beginning>());
        let digest = digest.transpose();
        digest.map_err(|_| Problem::bad_request("`digest` must be 8 to 64 hexadecimal digits"))
    };
    Ok(match action {
        "pause" => Command::Pause,
        "resume" => Command::Resume,
        "stop" => Command::Stop,
        "approve" => Command::Approve(named(details.digest)?),
        "deny" => {
            let digest = named(details.digest)?;
            // One line: what follows a command on its line belongs to it.
            let reason = given(details.reason).map(|reason| one_line(&reason));
            if reason
                .as_ref()
                .is_some_and(|reason| reason.chars().count() > LONGEST_REASON)
            {
                let detail = format!("`reason` has more than {LONGEST_REASON} characters");
                return Err(Problem::bad_request(detail));
            }
            match (digest, reason) {
                // As in a comment, the digest may stand before the reason.
                (None, Some(reason)) => Command::deny(&reason),
                (digest, reason) => Command::Deny { digest, reason },
            }
        }
        "budget" => {
            let number = details.tokens.and_then(|given| match given {
                Tokens::Number(number) => Some(number).filter(|number| *number > 0),
                Tokens::Text(text) => tokens(text.trim()),
            });
            Command::Budget(
                number.ok_or_else(|| {
                    Problem::bad_request("`tokens` must be a number such as 500000, \"500k\" or \"2M\"")
                })?,
            )
        }
        _ => {
            let detail = format!("there is no such action; there are {}", ACTIONS.join(", "));
            return Err(Problem::not_found(detail));
        }
    })
}

/// Returns the record of a run.
fn record_of(run: &Run) -> Result<Record, Problem> {
    Record::read(run).map_err(|unreadable| Problem::new(StatusCode::CONFLICT, unreadable.to_string()))
}

impl Web {
    /// Does something to a run; returns what came of it. A run that cannot be read can only be
    /// stopped: nobody sees here what else would come of it.
    pub(super) async fn act(
        &self,
        visitor: &Visitor,
        run: RunId,
        action: &str,
        details: Details,
    ) -> Result<ActionOutcome, Problem> {
        let command = command(action, details)?;
        let store = self.service.store();
        let Some(run) = store.run(run).await? else {
            return Err(Problem::not_found("there is no such run"));
        };
        if run.state.is_final() {
            let detail = format!("the run is {} already", run.state);
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        if command != Command::Stop {
            record_of(&run)?;
        }
        match self.service.tell(&run.task, &command, Some(&visitor.name)).await? {
            CommandOutcome::NoRun => Err(Problem::new(StatusCode::CONFLICT, "the run has ended meanwhile")),
            CommandOutcome::Worker(_) => Ok(ActionOutcome::Passed),
            CommandOutcome::Here(Visited::Stays) => {
                let Some(run) = store.run(run.id).await? else {
                    return Ok(ActionOutcome::Visited(Visited::Stays));
                };
                let record = record_of(&run)?;
                Ok(ActionOutcome::of_waiting(&command, &visitor.name, run.state, &record))
            }
            CommandOutcome::Here(visited) => Ok(ActionOutcome::Visited(visited)),
        }
    }

    /// Switches automatic approval on, for so many minutes or as long as the configuration allows,
    /// or off.
    pub(super) async fn switch_approval(
        &self,
        visitor: &Visitor,
        is_on: bool,
        minutes: Option<u32>,
    ) -> Result<(), Problem> {
        if !is_on {
            self.service.end_automatic_approval(&visitor.name).await?;
            return Ok(());
        }
        let time = minutes.map(|minutes| TimeDelta::minutes(minutes.into()));
        if time.is_some_and(|time| time.is_zero()) {
            return Err(Problem::bad_request("`minutes` must be at least 1"));
        }
        match self.service.start_automatic_approval(&visitor.name, time).await {
            Ok(_) => Ok(()),
            Err(NotStarted::Store(error)) => Err(error.into()),
            Err(refused @ NotStarted::NotEnabled) => Err(Problem::new(StatusCode::CONFLICT, refused.to_string())),
            Err(refused @ NotStarted::TooLong { .. }) => Err(Problem::bad_request(refused.to_string())),
        }
    }

    /// Hides from their lists the finished runs that there are, and the evaluations that are over
    /// or were broken off.
    pub(super) async fn clear_history(&self, visitor: &Visitor) -> Result<(), Problem> {
        let store = self.service.store();
        store.hide_history().await?;
        let now = Utc::now();
        store.hide_evaluations(|one| stored::is_running(one, now)).await?;
        let fact = Fact::Ordered {
            by: visitor.name.clone(),
            command: "clear-history".to_owned(),
        };
        self.service.journal().record(&Subject::default(), fact);
        Ok(())
    }
}
