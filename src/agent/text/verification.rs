//! Verification report for people: the results of the checks, why repair ended, and what a reviewer
//! should examine.

use crate::agent::record::{CheckedIn, Record};
use crate::agent::settings::Verification;
use crate::evidence::check::{Checked, Excuse};
use crate::evidence::difference::Finding;
use crate::evidence::repair::{End, Repairs};
use crate::evidence::unmentioned::Unmentioned;
use crate::markdown::compose::{Line, Page};
use crate::plain::counted;

/// Maximum number of set-up commands that are shown.
const MOST_COMMANDS: usize = 20;
/// Maximum characters of a part of the task.
const LONGEST_PART: usize = 300;

/// Returns the reason why a result is only a draft.
pub(crate) fn what_is_wrong(record: &Record) -> &'static str {
    let mut open = record.verified.checks.iter().filter(|check| check.is_open()).peekable();
    if open.peek().is_none() && !record.takes_tests_away() {
        "it did not pass its review"
    } else if open.peek().is_none() {
        "tests were deleted or skipped"
    } else if open.all(|check| check.passes_only_at_work) {
        "the checks pass only in the container of the work"
    } else {
        "the checks do not pass"
    }
}

/// Writes the result of each check.
pub(crate) fn verification(page: &mut Page, record: &Record, settings: &Verification) {
    if record.verified.checks.is_empty() {
        let why = why_nothing_was_checked(record, settings);
        page.paragraph(Line::filled("Nothing was checked: {}.", [why.into()]));
        return;
    }
    page.own("**How it was verified**");
    let item = |check: &Checked| {
        let mark = match (check.passed(), check.is_open()) {
            (true, _) => "✅ ",
            (false, false) => "⚠️ ",
            (false, true) => "❌ ",
        };
        let outcome = Line::figures(&outcome(check));
        let line = Line::from(mark).and(Line::code(&check.command)).and(" ").and(outcome);
        line.and(limit(check))
    };
    page.items(record.verified.checks.iter().map(item).collect());
    place(page, record, settings);
    if let Some(tries) = tries_so_far(record) {
        page.paragraph(Line::figures(&tries));
    }
    if let Some(end) = record
        .verified
        .repair
        .end
        .filter(|end| *end != End::RoundsUsed || record.verified.repair.rounds > 0)
    {
        page.paragraph(Line::figures(&why_ended(end, &record.verified.repair)));
    }
}

/// Returns how often the task was begun and which result this is, if it was begun more than once.
fn tries_so_far(record: &Record) -> Option<String> {
    let (begun, delivered, is_good) = record.worked.tries.told()?;
    let which = if is_good {
        "this is the result of the last, the first that passes: its checks have chosen it, so look at what they do not test".to_owned()
    } else {
        format!("no result passed, and this one, number {delivered}, is the one whose checks fail least")
    };
    Some(format!(
        "The task was begun {begun} times, each time from its base; {which}."
    ))
}

/// Writes where the checks ran, if a reviewer has to know it: the set-up of a new container can
/// determine their results.
fn place(page: &mut Page, record: &Record, settings: &Verification) {
    match record.verified.checked_in {
        None => {}
        Some(CheckedIn::Fresh) => {
            let planned = record.planned.plan.as_ref().and_then(|plan| plan.selected_environment.as_ref());
            let planned = planned.map(|environment| environment.setup_commands.clone());
            let commands = [planned.unwrap_or_default(), record.worked.installed.clone()].concat();
            if !commands.is_empty() {
                page.paragraph(Line::filled(
                    "The checks ran in a new container, set up by {}.",
                    [quoted(&commands)],
                ));
            }
            if !record.worked.added_set_up.is_empty() {
                page.paragraph(Line::filled(
                    "⚠️ The model added to its set-up, look at it before you trust the checks: {}.",
                    [quoted(&record.worked.added_set_up)],
                ));
            }
        }
        Some(CheckedIn::Work) => page.own(
            "The checks ran in the container that the work was done in (`planning.verification.environment: same`).",
        ),
        Some(CheckedIn::WorkBecauseOfSetUp { seconds }) => page.paragraph(Line::filled(
            "The checks ran in the container that the work was done in: its set-up took {} s, and what takes longer than {} s is \
             not repeated in a new one (`planning.verification.fresh_set_up_seconds`).",
            [
                Line::figures(&seconds.to_string()),
                Line::figures(&settings.fresh_set_up_seconds.to_string()),
            ],
        )),
    }
}

/// Returns the first of `commands`, separated by commas.
fn quoted(commands: &[String]) -> Line {
    let shown = commands.iter().take(MOST_COMMANDS).enumerate();
    let line = shown.fold(Line::default(), |line, (number, command)| {
        let comma = if number == 0 { "" } else { ", " };
        line.and(comma).and(Line::code(command))
    });
    match commands.len().saturating_sub(MOST_COMMANDS) {
        0 => line,
        more => line.and(Line::filled(", {} more", [Line::figures(&more.to_string())])),
    }
}

fn why_nothing_was_checked(record: &Record, settings: &Verification) -> &'static str {
    if !settings.enabled {
        "checks are switched off (`planning.verification.enabled`)"
    } else if !record.has_changes() && record.planned.plan.is_none() {
        "nothing was changed"
    } else if !record.has_changes() {
        "nothing was changed, and the plan names no command for it"
    } else if settings.test_command.trim() == "none" {
        "the plan names no command for it, and the project's tests are switched off (`planning.verification.test_command`)"
    } else if record.planned.plan.is_none() {
        "there was no plan, and the project names no command for it; name one in `planning.verification.test_command`"
    } else {
        "neither the plan nor the project names a command for it; name one in `planning.verification.test_command`, or \
         in `AGENTS.md` for the planner"
    }
}

/// Returns true if a failed check's output is worth reading, which it is not if the check could not
/// be started.
pub(crate) fn has_something_to_say(check: &Checked) -> bool {
    !check.passed() && check.excuse != Some(Excuse::DidNotStart)
}

/// Returns the result of a check, as the end of a sentence that begins with its command.
pub(crate) fn outcome(check: &Checked) -> String {
    match (check.exit_code, check.excuse) {
        _ if check.passed() => "passed".to_owned(),
        (code, _) if check.passes_only_at_work => {
            let there = code.map_or_else(|| without_end(check), |code| format!("ended with {code}"));
            format!("passed only in the container of the work; in a new one it {there}")
        }
        (Some(code), Some(Excuse::FailedBefore)) => {
            format!("ended with {code}, as it did before the change")
        }
        (Some(code), Some(Excuse::DidNotStart)) => {
            format!("could not be started here (it ended with {code}), so it tested nothing")
        }
        (Some(code), None) => format!("ended with {code} instead of {}", check.expected),
        (None, _) => without_end(check),
    }
}

/// Returns what became of a check that did not end by itself.
fn without_end(check: &Checked) -> String {
    match check.reached_limit {
        Some(seconds) => format!("was ended after {seconds} s"),
        None => "did not come to an end".to_owned(),
    }
}

/// Returns the name of the limit that ended a check, to stand behind its [`outcome`].
pub(crate) fn limit(check: &Checked) -> &'static str {
    match check.reached_limit {
        Some(_) => " (`command_executor.timeout_seconds`)",
        None => "",
    }
}

/// Returns the reason why repair ended.
pub(crate) fn why_ended(end: End, repairs: &Repairs) -> String {
    match end {
        End::Unchanged => "The last try to repair it changed nothing of the failure, so there was no other.".to_owned(),
        End::RoundsUsed => format!("{} to repair it did not help.", counted(repairs.rounds, "try")),
        End::TooManyFailures => format!(
            "This is failure number {} of this run, each after the one before was repaired, so it was not tried again.",
            repairs.failures
        ),
    }
}

/// Writes the findings in the diff that the task did not ask for.
pub(crate) fn to_look_at(page: &mut Page, findings: &[Finding]) {
    if findings.is_empty() {
        return;
    }
    page.own("**What a reviewer should look at**");
    let item = |finding: &Finding| {
        let (place, what) = finding.heading();
        Line::filled(
            "{}: {}: {}",
            [Line::code(&place), what.into(), Line::code(&finding.text)],
        )
    };
    page.items(findings.iter().map(item).collect());
}

/// Writes the parts of the task that no test mentions.
pub(crate) fn no_test_mentions(page: &mut Page, parts: &[Unmentioned]) {
    if parts.is_empty() {
        return;
    }
    page.own("**What no test mentions**");
    page.paragraph(
        "That tests pass does not show that these parts of the task were done: no test has what is named in brackets, or, where nothing is, a word of the part.",
    );
    let item = |unmentioned: &Unmentioned| {
        let part = Line::said(&unmentioned.part, LONGEST_PART);
        if unmentioned.names.is_empty() {
            return part;
        }
        Line::filled("{} ({})", [part, quoted(&unmentioned.names)])
    };
    page.items(parts.iter().map(item).collect());
}

/// Formats a part of the task that no test mentions as a line for a terminal.
pub(crate) fn not_mentioned(unmentioned: &Unmentioned) -> String {
    let Unmentioned { part, names } = unmentioned;
    match names.join(", ") {
        names if names.is_empty() => format!("No test has a word of this part of the task: {part}"),
        names => format!("No test mentions {names}, and the task does: {part}"),
    }
}

/// Formats one finding as a line for a terminal.
pub(crate) fn looked_at(finding: &Finding) -> String {
    let (place, what) = finding.heading();
    format!("{place}: {what}: {}", finding.text)
}
