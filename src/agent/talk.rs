//! What people read on the item: each text is one function, so that all of them can be seen in one place.

use std::fmt::Write as _;

use chrono::Utc;

use super::record::{Checked, Failure, Record};
use super::run::Settings;
use crate::task::id::RunId;
use crate::task::state::{Stage, State};

/// Returns the one progress comment.
pub fn progress(run: RunId, state: State, record: &Record, settings: &Settings) -> String {
    let mut text = format!("### 🛠️ {}\n\n", headline(state));
    if let Some(plan) = &record.plan {
        if !plan.comment.trim().is_empty() {
            let _ = writeln!(text, "{}\n", plan.comment.trim());
        }
        let _ = writeln!(text, "{}", plan.checklist());
    }
    if let Some(environment) = &record.environment {
        let _ = writeln!(text, "Environment: `{environment}`");
    }
    notes(&mut text, &record.notes);
    let _ = write!(text, "\n<sub>{} · run `{run}`</sub>", spent(record, settings));
    if !state.is_final() {
        text.push_str("\n<sub>Take the processing label off to stop it.</sub>");
    }
    text
}

/// Returns in a few words what is done in a stage.
pub fn headline(state: State) -> &'static str {
    match state {
        State::Queued => "Waiting for a free worker",
        State::Planning => "Planning",
        State::Preparing => "Preparing the environment",
        State::Working => "Working",
        State::Verifying => "Checking the result",
        State::Delivering => "Delivering",
        State::Paused(Stage::Planning | Stage::Preparing | Stage::Working | Stage::Verifying | Stage::Delivering) => {
            "Paused"
        }
        State::Done => "Done",
        State::Stopped => "Stopped",
        State::Failed => "Failed",
    }
}

fn notes(text: &mut String, notes: &[String]) {
    for note in notes {
        let _ = writeln!(text, "\n> ⚠️ {note}");
    }
}

/// Returns turns, tokens, cost and time in one line.
pub fn spent(record: &Record, settings: &Settings) -> String {
    let usage = &record.usage;
    let turns = counted(record.turns, "model turn");
    let mut text = format!("{turns} · {} tokens in, {} out", usage.input, usage.output);
    if usage.cached > 0 {
        let _ = write!(text, ", {} from the cache", usage.cached);
    }
    if let Some(cost) = settings.budget.cost(usage) {
        let _ = write!(text, " · ${cost:.2}");
    }
    if let Some(started_at) = record.started_at {
        let minutes = (Utc::now() - started_at).num_minutes().max(0);
        let _ = write!(text, " · {minutes} min");
    }
    text
}

/// Returns `1 turn`, `2 turns`.
pub fn counted(number: u32, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// Returns the final comment of a run that came to its end.
pub fn done(record: &Record, settings: &Settings) -> String {
    let result = match (&record.change, record.has_changes()) {
        (Some(change), _) => change.url.clone(),
        (None, true) => {
            let branch = record.base.as_ref().map_or("", |base| base.head_branch.as_str());
            format!("pushed to `{branch}`")
        }
        (None, false) => "nothing had to be changed".to_owned(),
    };
    let verdict = if record.is_verified() {
        "✅ Done"
    } else {
        "⚠️ Done, but not every check passes"
    };
    let mut text = format!("### {verdict}: {result}\n\n");
    if let Some(summary) = &record.summary {
        let _ = writeln!(text, "{}\n", summary.trim());
    }
    text.push_str(&verification(&record.checks));
    notes(&mut text, &record.notes);
    let _ = write!(text, "\n<sub>{}</sub>", spent(record, settings));
    text
}

/// Returns the final comment of a run that failed.
pub fn failed(
    failure: &Failure,
    record: &Record,
    settings: &Settings,
    trigger: &str,
    saved_branch: Option<&str>,
) -> String {
    let mut text = format!("### ❌ This could not be done\n\n{}\n", sentence(&failure.text));
    if let Some(branch) = saved_branch {
        let _ = writeln!(text, "\nThe work so far is on the branch `{branch}`.");
    }
    notes(&mut text, &record.notes);
    let _ = write!(
        text,
        "\nPut the label `{trigger}` on again to start a new run.\n\n<sub>{}</sub>",
        spent(record, settings)
    );
    text
}

/// Returns the final comment of a run that people did not want any more.
pub fn withdrawn(reason: &str, trigger: &str) -> String {
    format!(
        "### ⏹️ Stopped\n\nThe run was ended because {reason}. Put the label `{trigger}` on again to start a new one."
    )
}

/// Returns the comment on a run that is put back because of the worker's own trouble.
pub fn postponed(reason: &str, trigger: &str) -> String {
    format!(
        "### ⏳ Waiting\n\nThe work cannot go on at the moment and will be tried again by itself: {}\n\nPut the label \
         `{trigger}` on again to have it tried at once.",
        sentence(reason)
    )
}

/// Returns the text of a pull/merge request.
pub fn change_body(record: &Record, settings: &Settings, closes: Option<u64>, run: RunId) -> String {
    let mut text = String::new();
    if let Some(summary) = &record.summary {
        let _ = writeln!(text, "{}\n", summary.trim());
    }
    text.push_str(&verification(&record.checks));
    let open: Vec<&Checked> = record.checks.iter().filter(|check| !check.passed()).collect();
    if !open.is_empty() {
        text.push_str("\n### What is open\n");
        for check in open {
            let _ = writeln!(
                text,
                "- {} does not pass:\n\n{}",
                code(&check.command),
                fenced(&check.tail)
            );
        }
    }
    notes(&mut text, &record.notes);
    if let Some(number) = closes {
        let _ = write!(text, "\nCloses #{number}\n");
    }
    let _ = write!(text, "\n<sub>{} · run `{run}`</sub>", spent(record, settings));
    text
}

fn verification(checks: &[Checked]) -> String {
    if checks.is_empty() {
        return "No verification command was run.\n".to_owned();
    }
    let mut text = "### How it was verified\n".to_owned();
    for check in checks {
        let mark = if check.passed() { "✅" } else { "❌" };
        let _ = writeln!(text, "- {mark} {} {}", code(&check.command), outcome(check));
    }
    text
}

/// Returns how a check ended: the end of a sentence that begins with its command.
pub fn outcome(check: &Checked) -> String {
    match check.exit_code {
        _ if check.passed() => "passed".to_owned(),
        Some(code) => format!("ended with {code} instead of {}", check.expected),
        None => "did not come to an end".to_owned(),
    }
}

/// Returns `text` as code within a line, which nothing in it can end.
fn code(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("`{}`", line.replace('`', "'"))
}

/// Returns `text` in a code block that nothing in it can close.
fn fenced(text: &str) -> String {
    let longest = text
        .split(|character| character != '`')
        .map(str::len)
        .max()
        .unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

/// Returns an error text as a sentence: capital letter, full stop.
pub fn sentence(text: &str) -> String {
    let text = text.trim();
    let mut characters = text.chars();
    let first = characters
        .next()
        .map(|first| first.to_uppercase().to_string())
        .unwrap_or_default();
    let stop = if text.ends_with(['.', '!', '?', '`']) { "" } else { "." };
    format!("{first}{}{stop}", characters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_block_cannot_be_closed_from_inside() {
        assert_eq!(fenced("a\n```\nb"), "````\na\n```\nb\n````");
    }

    #[test]
    fn errors_become_sentences() {
        assert_eq!(sentence("the token is wrong"), "The token is wrong.");
        assert_eq!(sentence("Why?"), "Why?");
    }
}
