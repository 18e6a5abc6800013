//! How the work on a run ended, for now or for good.

use chrono::{DateTime, Utc};

use crate::agent::record::FailureKind;

/// How the work on a run ended, for the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOutcome {
    /// `is_verified` where every check passed and no test was taken away; else the result is a
    /// draft that says so.
    Done {
        is_verified: bool,
    },
    /// A person did not want it any more.
    Stopped,
    /// Set aside until a person or the clock lets it go on; `by_limit` where its budget is used up.
    Paused {
        by_limit: bool,
    },
    /// Waits for a person's answer or approval.
    Waiting,
    Failed(FailureKind),
    /// Put back until then; not finished.
    Postponed(DateTime<Utc>),
    /// Saved for the next process.
    Interrupted,
    /// Another worker has it.
    Disowned,
    /// The store could not be written: the run goes on from what it holds, when it can be written
    /// again.
    Unsaved,
}

impl std::fmt::Display for RunOutcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done { is_verified: true } => formatter.write_str("done"),
            Self::Done { is_verified: false } => formatter.write_str("done, but not verified"),
            Self::Stopped => formatter.write_str("stopped"),
            Self::Paused { by_limit: false } => formatter.write_str("paused"),
            Self::Paused { by_limit: true } => formatter.write_str("paused: a limit is reached"),
            Self::Waiting => formatter.write_str("waiting for an answer"),
            Self::Failed(FailureKind::Task) => formatter.write_str("failed"),
            Self::Failed(FailureKind::Policy) => formatter.write_str("failed: refused by a policy"),
            Self::Failed(FailureKind::Unreadable) => formatter.write_str("failed: unreadable replies"),
            Self::Postponed(until) => write!(formatter, "put back until {}", until.format("%Y-%m-%d %H:%M UTC")),
            Self::Interrupted => formatter.write_str("interrupted"),
            Self::Disowned => formatter.write_str("given up to another worker"),
            Self::Unsaved => formatter.write_str("put down, because the store cannot be written or read"),
        }
    }
}
