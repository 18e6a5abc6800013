//! The outcome of one period of work on a run, temporary or final.

use chrono::{DateTime, Utc};

use crate::agent::record::FailureKind;

/// Outcome of the work on a run; it determines the exit code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunOutcome {
    /// `is_verified` if every check passed and no test was removed; otherwise the result is a draft
    /// that says so.
    Done {
        is_verified: bool,
    },
    /// A person stopped the run.
    Stopped,
    /// Paused until a person or the clock resumes it; `by_limit` if its budget is used up.
    Paused {
        by_limit: bool,
    },
    /// The run waits for a person's answer or approval.
    Waiting,
    Failed(FailureKind),
    /// Unfinished; the run waits until the given time.
    Postponed(DateTime<Utc>),
    /// The run was saved for the next process.
    Interrupted,
    /// Another worker holds the lease.
    Disowned,
    /// The store could not be written; the run resumes from the last saved state once it can be.
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
