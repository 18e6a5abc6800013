//! The outcome of one period of work on a run, temporary or final.

use chrono::{DateTime, Utc};

use crate::agent::record::FailureKind;
use crate::plain::{one_line, printable};
use crate::task::state::{Judged, State};

/// Why a run waits whose end was decided, and is not on its item yet.
pub const UNSHOWN: &str = "its end could not be shown on the item yet";

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
    /// The run waits for a person's answer, or for approval of this.
    Waiting {
        approval_of: Option<Judged>,
    },
    Failed(FailureKind),
    /// Unfinished; the run waits until the given time, for this reason.
    Postponed {
        until: DateTime<Utc>,
        reason: String,
    },
    /// The run was saved for the next process.
    Interrupted,
    /// Another worker holds the lease.
    Disowned,
    /// The store could not be written; the run resumes from the last saved state once it can be.
    Unsaved,
}

impl RunOutcome {
    /// Returns the outcome of a run that was set aside in `state`.
    pub fn waiting_in(state: State) -> Self {
        let approval_of = match state {
            State::AwaitingApproval(judged) => Some(judged),
            _ => None,
        };
        Self::Waiting { approval_of }
    }

    /// Returns the outcome on one line, with the reason where the run waits for a time.
    pub fn with_reason(&self) -> String {
        if let Self::Postponed { reason, .. } = self {
            return format!("{self}: {}", printable(&one_line(reason)));
        }
        self.to_string()
    }
}

/// Writes the outcome without a reason.
impl std::fmt::Display for RunOutcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Done { is_verified: true } => formatter.write_str("done"),
            Self::Done { is_verified: false } => formatter.write_str("done, but not verified"),
            Self::Stopped => formatter.write_str("stopped"),
            Self::Paused { by_limit: false } => formatter.write_str("paused"),
            Self::Paused { by_limit: true } => formatter.write_str("paused: a limit is reached"),
            Self::Waiting { approval_of: None } => formatter.write_str("waiting for an answer"),
            Self::Waiting {
                approval_of: Some(Judged::Plan),
            } => formatter.write_str("waiting for approval of its plan"),
            Self::Waiting {
                approval_of: Some(Judged::Result),
            } => formatter.write_str("waiting for approval of its result"),
            Self::Failed(FailureKind::Task) => formatter.write_str("failed"),
            Self::Failed(FailureKind::Policy) => formatter.write_str("failed: refused by a policy"),
            Self::Failed(FailureKind::Unreadable) => formatter.write_str("failed: unreadable replies"),
            Self::Postponed { until, .. } => {
                write!(formatter, "put back until {}", until.format("%Y-%m-%d %H:%M UTC"))
            }
            Self::Interrupted => formatter.write_str("interrupted"),
            Self::Disowned => formatter.write_str("given up to another worker"),
            Self::Unsaved => formatter.write_str("put down, because the store cannot be written or read"),
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_reason_stands_on_one_line_and_controls_no_terminal() {
        let postponed = RunOutcome::Postponed {
            until: DateTime::UNIX_EPOCH + TimeDelta::hours(2),
            reason: "it answered 502:\n\u{1b}[2Jbusy".to_owned(),
        };
        assert_eq!(
            postponed.with_reason(),
            "put back until 1970-01-01 02:00 UTC: it answered 502: \u{fffd}[2Jbusy"
        );
        assert_eq!(RunOutcome::Stopped.with_reason(), "stopped");
    }
}
