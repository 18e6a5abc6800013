//! The labels that show, on the forge, where a task stands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::state::State;

/// The names of the labels. Only `trigger` is an input; the others are a view of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Labels {
    /// Put on by a person to start a run.
    pub trigger: String,
    /// Claimed and being worked on.
    pub processing: String,
    /// A person must answer or approve.
    pub waiting: String,
    /// Paused; resumes by command or by itself.
    pub paused: String,
    /// Stopped by a person.
    pub stopped: String,
    /// Could not be done; the last comment says why.
    pub failed: String,
    /// Done.
    pub done: String,
}

impl Default for Labels {
    fn default() -> Self {
        let label = |end: &str| format!("coding agent{end}");
        Self {
            trigger: label(""),
            processing: label(" processing"),
            waiting: label(" waiting"),
            paused: label(" paused"),
            stopped: label(" stopped"),
            failed: label(" failed"),
            done: label(" done"),
        }
    }
}

impl Labels {
    /// Returns the one label that shows `state`.
    pub fn showing(&self, state: State) -> &str {
        match state {
            State::Queued
            | State::Planning
            | State::Reviewing(_)
            | State::Preparing
            | State::Working
            | State::Verifying
            | State::Delivering => &self.processing,
            State::AwaitingApproval(_) | State::AwaitingAnswer => &self.waiting,
            State::Paused(_) => &self.paused,
            State::Done => &self.done,
            State::Stopped => &self.stopped,
            State::Failed => &self.failed,
        }
    }

    /// Tells whether the labels that a task carries show that the work on it has ended.
    pub fn show_an_end(&self, carried: &[String]) -> bool {
        [&self.done, &self.failed, &self.stopped]
            .into_iter()
            .any(|label| carried.contains(label))
    }

    /// Returns all labels this program sets, the trigger included.
    pub fn all(&self) -> [&str; 7] {
        [
            &self.trigger,
            &self.processing,
            &self.waiting,
            &self.paused,
            &self.stopped,
            &self.failed,
            &self.done,
        ]
    }
}
