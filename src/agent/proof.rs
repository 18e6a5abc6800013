//! What people read of the evidence: how the checks went, why repairing ended, and what a reviewer should look at.

use std::fmt::Write as _;

use super::Verification;
use super::record::Record;
use crate::evidence::check::{Checked, Excuse};
use crate::evidence::difference::Finding;
use crate::evidence::repair::{End, Repairs};
use crate::markdown::code::code;

/// Returns why a result is only a draft.
pub(super) fn what_is_wrong(record: &Record) -> &'static str {
    if record.passes_checks() {
        "tests were taken away"
    } else {
        "the checks do not pass"
    }
}

/// Returns how each check went.
pub(super) fn verification(record: &Record, settings: &Verification) -> String {
    if record.checks.is_empty() {
        return format!(
            "\nNothing was checked: {}.\n",
            why_nothing_was_checked(record, settings)
        );
    }
    let mut text = "\n**How it was verified**\n\n".to_owned();
    for check in &record.checks {
        let mark = match (check.passed(), check.is_open()) {
            (true, _) => "✅",
            (false, false) => "⚠️",
            (false, true) => "❌",
        };
        let _ = writeln!(text, "- {mark} {} {}", code(&check.command), outcome(check));
    }
    if let Some(end) = record
        .repair
        .end
        .filter(|end| *end != End::RoundsUsed || record.repair.rounds > 0)
    {
        let _ = writeln!(text, "\n{}", why_ended(end, &record.repair));
    }
    text
}

fn why_nothing_was_checked(record: &Record, settings: &Verification) -> &'static str {
    if !settings.enabled {
        "checks are switched off (`planning.verification.enabled`)"
    } else if !record.has_changes() && record.plan.is_none() {
        "nothing was changed"
    } else if !record.has_changes() {
        "nothing was changed, and the plan names no command for it"
    } else if settings.test_command.trim() == "none" {
        "the plan names no command for it, and the project's tests are switched off (`planning.verification.test_command`)"
    } else if record.plan.is_none() {
        "there was no plan, and the project names no command for it"
    } else {
        "neither the plan nor the project names a command for it"
    }
}

/// Tells whether a failing check's output is worth reading: one that could not be started has only said that.
pub(super) fn has_something_to_say(check: &Checked) -> bool {
    !check.passed() && check.excuse != Some(Excuse::DidNotStart)
}

/// Returns how a check ended: the end of a sentence that begins with its command.
pub(super) fn outcome(check: &Checked) -> String {
    match (check.exit_code, check.excuse) {
        _ if check.passed() => "passed".to_owned(),
        (Some(code), Some(Excuse::FailedBefore)) => {
            format!("ended with {code}, as it did before the change")
        }
        (Some(code), Some(Excuse::DidNotStart)) => {
            format!("could not be started here (it ended with {code}), so it tested nothing")
        }
        (Some(code), None) => format!("ended with {code} instead of {}", check.expected),
        (None, _) => "did not come to an end".to_owned(),
    }
}

/// Returns why the model did not go on repairing.
pub(super) fn why_ended(end: End, repairs: &Repairs) -> String {
    match end {
        End::Unchanged => "The last try to repair it changed nothing of the failure, so there was no other.".to_owned(),
        End::RoundsUsed => format!("{} to repair it did not help.", tries(repairs.rounds)),
        End::TooManyFailures => format!(
            "This is failure number {} of this run, each after the one before was repaired, so it was not tried again.",
            repairs.failures
        ),
    }
}

fn tries(rounds: u32) -> String {
    match rounds {
        1 => "1 try".to_owned(),
        rounds => format!("{rounds} tries"),
    }
}

/// Returns what the difference shows besides what was asked for.
pub(super) fn to_look_at(findings: &[Finding]) -> String {
    if findings.is_empty() {
        return String::new();
    }
    let mut text = "\n**What a reviewer should look at**\n\n".to_owned();
    for finding in findings {
        let _ = writeln!(text, "- {}", looked_at(finding, code));
    }
    text
}

/// Returns one finding as a line; `quoted` makes the stranger's words harmless.
pub(super) fn looked_at(finding: &Finding, quoted: fn(&str) -> String) -> String {
    let (place, what) = finding.heading();
    format!("{}: {what}: {}", quoted(&place), quoted(&finding.text))
}
