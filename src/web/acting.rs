//! The actions of people, which go the ways of commands of the command line, under the name of the
//! user.

use axum::http::StatusCode;
use chrono::TimeDelta;

use super::Web;
use super::access::Visitor;
use super::problem::Problem;
use crate::approval::digest::Beginning;
use crate::journal::fact::{Fact, Subject};
use crate::service::attending::Told;
use crate::service::automatic_approval::NotStarted;
use crate::task::command::{Command, tokens};
use crate::task::id::RunId;

/// Most characters of a reason.
const LONGEST_REASON: usize = 2_000;

/// The details of an action.
#[derive(Debug, Clone, Default, serde::Deserialize, schemars::JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Details {
    /// Of `approve`: the beginning of the digest that was looked at, 8 to 64 hexadecimal digits.
    pub(super) digest: Option<String>,
    /// Of `deny`: the reason.
    pub(super) reason: Option<String>,
    /// Of `budget`: tokens from now on, such as 500000, 500k or 2M.
    pub(super) tokens: Option<String>,
}

/// The names of the actions on a run.
pub(super) const ACTIONS: [&str; 6] = ["pause", "resume", "stop", "approve", "deny", "budget"];

/// Returns the command that an action is.
fn command(action: &str, details: Details) -> Result<Command, Problem> {
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    Ok(match action {
        "pause" => Command::Pause,
        "resume" => Command::Resume,
        "stop" => Command::Stop,
        "approve" => {
            let digest = given(details.digest)
                .map(|digest| digest.trim().parse::<Beginning>())
                .transpose();
            Command::Approve(digest.map_err(|_| Problem::bad_request("`digest` must be 8 to 64 hexadecimal digits"))?)
        }
        "deny" => {
            // One line: what follows a command on its line belongs to it.
            let reason = given(details.reason).map(|reason| reason.split_whitespace().collect::<Vec<_>>().join(" "));
            if reason
                .as_ref()
                .is_some_and(|reason| reason.chars().count() > LONGEST_REASON)
            {
                let detail = format!("`reason` has more than {LONGEST_REASON} characters");
                return Err(Problem::bad_request(detail));
            }
            Command::Deny(reason)
        }
        "budget" => {
            let number = given(details.tokens).and_then(|text| tokens(text.trim()));
            Command::Budget(number.ok_or_else(|| {
                Problem::bad_request("`tokens` must be a number such as \"500000\", \"500k\" or \"2M\"")
            })?)
        }
        _ => {
            let detail = format!("there is no such action; there are {}", ACTIONS.join(", "));
            return Err(Problem::not_found(detail));
        }
    })
}

impl Web {
    /// Does something to a run; returns what came of it, in a few words.
    pub(super) async fn act(
        &self,
        visitor: &Visitor,
        run: RunId,
        action: &str,
        details: Details,
    ) -> Result<String, Problem> {
        let command = command(action, details)?;
        let store = self.service.store();
        let Some(run) = store.run(run).await? else {
            return Err(Problem::not_found("there is no such run"));
        };
        if run.state.is_final() {
            let detail = format!("the run is {} already", run.state);
            return Err(Problem::new(StatusCode::CONFLICT, detail));
        }
        match self.service.tell(&run.task, &command, Some(&visitor.name)).await? {
            Told::NoRun => Err(Problem::new(StatusCode::CONFLICT, "the run has ended meanwhile")),
            Told::Worker(_) => Ok("the worker was told, and does so at its next safe point".to_owned()),
            Told::Here(visited) => Ok(visited.to_string()),
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

    /// Hides the finished runs that there are from the history.
    pub(super) async fn clear_history(&self, visitor: &Visitor) -> Result<(), Problem> {
        self.service.store().hide_history().await?;
        let fact = Fact::Ordered {
            by: visitor.name.clone(),
            command: "clear-history".to_owned(),
        };
        self.service.journal().record(&Subject::default(), fact);
        Ok(())
    }
}
