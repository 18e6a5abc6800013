//! What people read of the evidence: how the checks went, why repairing ended, and what a reviewer should look at.

use std::fmt::Write as _;

use super::Verification;
use super::record::{CheckedIn, Record};
use crate::evidence::check::{Checked, Excuse};
use crate::evidence::difference::Finding;
use crate::evidence::repair::{End, Repairs};
use crate::markdown::code::code;

/// Most set-up commands that are shown.
const MOST_COMMANDS: usize = 20;

/// Returns why a result is only a draft.
pub(super) fn what_is_wrong(record: &Record) -> &'static str {
    let mut open = record.checks.iter().filter(|check| check.is_open()).peekable();
    if open.peek().is_none() {
        "tests were taken away"
    } else if open.all(|check| check.passes_only_at_work) {
        "the checks pass only in the container that the work was done in"
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
    text.push_str(&place(record, settings));
    if let Some(end) = record
        .repair
        .end
        .filter(|end| *end != End::RoundsUsed || record.repair.rounds > 0)
    {
        let _ = writeln!(text, "\n{}", why_ended(end, &record.repair));
    }
    text
}

/// Returns where the checks ran, as far as a reviewer has to know it: what set a new container up
/// can decide how they end.
fn place(record: &Record, settings: &Verification) -> String {
    let quoted = |commands: &[String]| {
        let shown = commands.iter().take(MOST_COMMANDS).map(|command| code(command));
        let mut shown: Vec<_> = shown.collect();
        if commands.len() > MOST_COMMANDS {
            shown.push(format!("{} more", commands.len() - MOST_COMMANDS));
        }
        shown.join(", ")
    };
    match record.checked_in {
        None => String::new(),
        Some(CheckedIn::Fresh) => {
            let planned = record.plan.as_ref().and_then(|plan| plan.selected_environment.as_ref());
            let planned = planned.map(|environment| environment.setup_commands.clone());
            let commands = [planned.unwrap_or_default(), record.installed.clone()].concat();
            let mut text = String::new();
            if !commands.is_empty() {
                let _ = writeln!(
                    text,
                    "\nThe checks ran in a new container, set up by {}.",
                    quoted(&commands)
                );
            }
            if !record.added_set_up.is_empty() {
                let _ = writeln!(
                    text,
                    "\n⚠️ The model added to its set-up, look at it before you trust the checks: {}.",
                    quoted(&record.added_set_up)
                );
            }
            text
        }
        Some(CheckedIn::Work) => "\nThe checks ran in the container that the work was done in \
             (`planning.verification.environment: same`).\n"
            .to_owned(),
        Some(CheckedIn::WorkBecauseOfSetUp { seconds }) => format!(
            "\nThe checks ran in the container that the work was done in: its set-up took {seconds} s, and what takes longer than \
             {} s is not repeated in a new one (`planning.verification.fresh_set_up_seconds`).\n",
            settings.fresh_set_up_seconds
        ),
    }
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
        (code, _) if check.passes_only_at_work => {
            let there = code.map_or("did not come to an end".to_owned(), |code| format!("ended with {code}"));
            format!("passed only in the container that the work was done in; in a new one it {there}")
        }
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
