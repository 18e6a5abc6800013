//! Exit codes: what the program tells scripts.

use std::process::ExitCode;

use crate::agent::record::FailureKind;
use crate::agent::record::outcome::RunOutcome;

/// Everything that was asked for was done, or there was nothing to do.
pub const SUCCESS: u8 = 0;
/// A task failed, or something outside kept the program from working.
pub const FAILED: u8 = 1;
/// A policy of the program refused the task.
pub const REFUSED: u8 = 2;
/// The model's replies stayed unreadable.
pub const UNREADABLE: u8 = 3;
/// The command line is wrong, in the numbering of sysexits.h.
pub const USAGE: u8 = 64;
/// The configuration is wrong, in the same numbering.
pub const CONFIGURATION: u8 = 78;
/// Exit code after a signal that ended the program before the safe point.
pub const KILLED: u8 = 130;

/// Returns the exit code for the outcome of one run.
pub fn of(ending: &RunOutcome) -> u8 {
    match ending {
        RunOutcome::Done { is_verified: true }
        | RunOutcome::Stopped
        | RunOutcome::Paused { by_limit: false }
        | RunOutcome::Waiting { .. }
        | RunOutcome::Interrupted
        | RunOutcome::Disowned => SUCCESS,
        // A script must not mistake a draft that lists its own faults for a result.
        RunOutcome::Done { is_verified: false }
        | RunOutcome::Failed(FailureKind::Task)
        | RunOutcome::Paused { by_limit: true }
        | RunOutcome::Postponed { .. }
        | RunOutcome::Unsaved => FAILED,
        RunOutcome::Failed(FailureKind::Policy) => REFUSED,
        RunOutcome::Failed(FailureKind::Unreadable) => UNREADABLE,
    }
}

/// Returns the exit code for several runs: that of the worst. A plain failure is worse than a
/// refusal, and a refusal is worse than unreadable replies.
pub fn of_all<'a>(endings: impl Iterator<Item = &'a RunOutcome>) -> ExitCode {
    let codes: Vec<u8> = endings.map(of).collect();
    let gravest = [FAILED, REFUSED, UNREADABLE]
        .into_iter()
        .find(|code| codes.contains(code));
    gravest.unwrap_or(SUCCESS).into()
}
