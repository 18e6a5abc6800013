//! What people read on the item: each text is one function, so that all of them can be seen in one place.
//!
//! The program's own words are Markdown that GitHub and GitLab render alike. What a model said stands in them only
//! through [`harmless`], and what a command said only in a block of code that it cannot close.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use chrono::Utc;

use super::proof::{has_something_to_say, to_look_at, verification, what_is_wrong};
use super::record::{Failure, Kept, Parked, Record, Saved};
use super::refused;
use super::round::Kind;
use super::workshop::Settings;
use crate::markdown::code::{code, fenced};
use crate::markdown::sanitize::{harmless, harmless_line, harmless_name};
use crate::plan::Plan;
use crate::task::id::RunId;
use crate::task::labels::Labels;
use crate::task::state::State;

/// Most characters of what the model says it is doing.
const LONGEST_DOING: usize = 200;

/// Tells whoever put the label on that they may not; `None` where nobody can tell who it was.
pub fn turned_away(by: Option<&str>, trigger: &str) -> String {
    match by.and_then(harmless_name) {
        Some(by) => format!(
            "Thank you, {by}. I begin work only where somebody who may write to this repository puts the label `{trigger}` on, \
             so I have taken it off again. Whoever may write can read this through and put it on."
        ),
        None => format!(
            "I cannot tell who put the label `{trigger}` on, so I have taken it off again. Somebody who may write to this \
             repository can put it on once more."
        ),
    }
}

/// Tells whoever put the label on a confidential issue that it is not worked on.
pub fn confidential(trigger: &str) -> String {
    format!(
        "This issue is confidential, and more people can read the project than the issue. What I would make of it, a branch \
         and a merge request, could be read by all of them, so I do not work on it and have taken the label `{trigger}` off \
         again. Make the issue or the project visible to the same people, or have the operator set \
         `gitlab.confidential_issues: neutral_names`, and put the label on once more."
    )
}

/// Returns the one progress comment. At the end of the run it folds up: the final comment below it says what counts.
pub fn progress(run: RunId, state: State, record: &Record, settings: &Settings, labels: &Labels) -> String {
    let parked = record
        .parked
        .as_ref()
        .filter(|_| !state.is_final() && !state.is_set_aside());
    let mut text = match parked {
        Some(parked) => waiting(parked, &labels.trigger),
        None if state.is_final() => format!("<details><summary>🛠️ {}: how it went</summary>\n", headline(state)),
        None => format!("### 🛠️ {}\n", headline(state)),
    };
    if let Some(plan) = &record.plan {
        if !plan.comment.trim().is_empty() {
            let _ = write!(text, "\n{}\n", harmless(&plan.comment));
        }
        let is_ticked = state == State::Done && record.is_verified();
        let _ = write!(text, "\n{}", checklist(plan, &record.finished_subtasks, is_ticked));
        for former in record.former_plans.iter().rev() {
            let _ = write!(
                text,
                "\n<details><summary>The plan before</summary>\n\n{}\n</details>\n",
                checklist(former, &BTreeSet::new(), false)
            );
        }
    }
    if state == State::Working && !record.doing.is_empty() {
        let _ = write!(text, "\n**Now:** {}\n", harmless_line(&record.doing, LONGEST_DOING));
    }
    notes(&mut text, &record.notes);
    text.push_str(&refused::listed(&record.refused));
    text.push_str("\n<sub>");
    if let Some(environment) = &record.environment {
        let _ = write!(text, "Environment {} · ", code(environment));
    }
    let _ = write!(text, "{} · run `{run}`", spent(record, settings));
    if state.is_final() {
        text.push_str("</sub>\n\n</details>");
    } else if state.is_set_aside() || parked.is_some() {
        text.push_str("</sub>");
    } else {
        let _ = write!(
            text,
            "<br>Comments are read before the next step. To stop it, write `/agent stop` or take the label `{}` \
             off; `/agent help` tells more.</sub>",
            labels.processing
        );
    }
    text
}

/// Returns how the progress comment of a run begins that waits for the outside.
fn waiting(parked: &Parked, trigger: &str) -> String {
    format!(
        "### ⏳ Waiting until {}\n\n{}\n\nThen it goes on by itself, and reads what was written here meanwhile. Put the label \
         `{trigger}` on to have it go on at once.\n",
        parked.until.format("%Y-%m-%d %H:%M UTC"),
        harmless(&sentence(&parked.reason))
    )
}

/// Returns in a few words what is done in a stage.
pub fn headline(state: State) -> &'static str {
    match state {
        State::Queued => "Waiting for a free worker",
        State::Planning => "Planning",
        State::Reviewing => "Reviewing the plan",
        State::AwaitingApproval(_) => "Waiting for approval",
        State::Preparing => "Preparing the environment",
        State::Working => "Working",
        State::AwaitingAnswer => "Waiting for an answer",
        State::Verifying => "Checking the result",
        State::Delivering => "Delivering",
        State::Paused(_) => "Paused",
        State::Done => "Done",
        State::Stopped => "Stopped",
        State::Failed => "Failed",
    }
}

/// Ticks what the model called finished, and everything at the end of a run whose checks passed.
fn checklist(plan: &Plan, finished: &BTreeSet<String>, is_all_done: bool) -> String {
    plan.ordered().into_iter().fold(String::new(), |mut list, subtask| {
        let is_ticked = is_all_done || finished.contains(&subtask.id);
        let tick = if is_ticked { "[x]" } else { "[ ]" };
        let words: Vec<_> = subtask.description.split_whitespace().collect();
        let _ = writeln!(list, "- {tick} {}", harmless(&words.join(" ")));
        list
    })
}

fn notes(text: &mut String, notes: &[String]) {
    for note in notes {
        let _ = writeln!(text, "\n> ⚠️ {}", harmless(note).replace('\n', "\n> "));
    }
}

/// Returns turns, tokens, cost and time in one line.
pub fn spent(record: &Record, settings: &Settings) -> String {
    let usage = &record.usage;
    let turns = counted(record.turns, "model turn");
    let mut text = format!("{turns} · {} tokens in", grouped(usage.input));
    if usage.cached > 0 {
        let _ = write!(text, " ({} from the cache)", grouped(usage.cached));
    }
    let _ = write!(text, ", {} out", grouped(usage.output));
    if let Some(cost) = settings.budget.cost(usage) {
        let _ = write!(text, " · ${cost:.2}");
    }
    if let Some(started_at) = record.started_at {
        let seconds = (Utc::now() - started_at).num_seconds().max(0);
        let _ = match seconds {
            0..120 => write!(text, " · {seconds} s"),
            _ => write!(text, " · {} min", seconds / 60),
        };
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
    let branch = record.base.as_ref().map_or("", |base| base.head_branch.as_str());
    let mut text = match (&record.change, record.has_changes(), record.is_verified()) {
        (Some(change), _, true) => format!("### ✅ Done: {}\n", change.url),
        (Some(change), _, false) => format!(
            "### ⚠️ Done, but {}: {} is a draft\n",
            what_is_wrong(record),
            change.url
        ),
        (None, true, true) => format!("### ✅ Done: pushed to {}\n", code(branch)),
        (None, true, false) => format!("### ⚠️ Pushed to {}, but {}\n", code(branch), what_is_wrong(record)),
        (None, false, true) => "### ✅ Done: nothing had to be changed\n".to_owned(),
        (None, false, false) => "### ⚠️ Nothing was changed, and the checks do not pass\n".to_owned(),
    };
    summary(&mut text, record);
    text.push_str(&verification(record, &settings.planning.verification));
    text.push_str(&to_look_at(&record.findings));
    notes(&mut text, &record.notes);
    text.push_str(&refused::listed(&record.refused));
    let _ = write!(text, "\n<sub>{}</sub>", spent(record, settings));
    text
}

/// Returns the final comment of a run that failed.
pub fn failed(failure: &Failure, record: &Record, settings: &Settings, trigger: &str, saved: Option<&Saved>) -> String {
    let mut text = format!(
        "### ❌ This could not be done\n\n{}\n",
        harmless(&sentence(&failure.text))
    );
    text.push_str(&work_so_far(saved));
    notes(&mut text, &record.notes);
    text.push_str(&refused::listed(&record.refused));
    let _ = write!(text, "\nTo start a new run, put the label `{trigger}` on again.");
    if record.turns > 0 {
        let _ = write!(text, "\n\n<sub>{}</sub>", spent(record, settings));
    }
    text
}

/// Says where the work is that was not delivered.
pub(super) fn work_so_far(saved: Option<&Saved>) -> String {
    let nowhere = "The work so far is on no branch: this request comes from a fork, and commits of a fork are never pushed to this \
                   repository.";
    match saved {
        None => String::new(),
        Some(Saved::Branch(branch)) => format!("\nThe work so far is on the branch {}.\n", code(branch)),
        Some(Saved::Kept(Kept::Mirror)) => {
            format!("\n{nowhere} It is kept with this program, and the run goes on from it.\n")
        }
        Some(Saved::Kept(Kept::File { file, reference })) => format!(
            "\n{nowhere} It is kept where this program runs, in the file {}; there {} brings it into a clone of the fork.\n",
            code(file),
            code(&format!("git fetch {file} {reference}"))
        ),
    }
}

/// Returns the final comment of a run that people did not want any more.
pub fn withdrawn(reason: &str, trigger: &str) -> String {
    format!(
        "### ⏹️ Stopped\n\nThe run was ended because {reason}. To start a new one, put the label `{trigger}` on again."
    )
}

/// Returns the comment that ends the rounds on an own pull/merge request.
pub fn needs_people(kind: Kind, most: u32, trigger: &str) -> String {
    let (what, key) = match kind {
        Kind::Review => ("reviews", "max_review_rounds"),
        Kind::Checks => ("failing checks", "max_ci_rounds"),
    };
    format!(
        "### 🙋 This needs a human\n\n{} of work on {what} did not settle it, and there are no more (`follow_up.{key}`). To have the \
         work go on all the same, put the label `{trigger}` on.",
        counted(most, "round")
    )
}

/// Returns the text of a pull/merge request.
pub fn change_body(record: &Record, settings: &Settings, closes: Option<u64>, run: RunId) -> String {
    if record.is_discreet {
        return discreet_body(closes, run);
    }
    let mut text = String::new();
    summary(&mut text, record);
    text.push_str(&verification(record, &settings.planning.verification));
    for check in record.checks.iter().filter(|check| has_something_to_say(check)) {
        let _ = write!(
            text,
            "\n<details><summary>What the failing check said</summary>\n\n{}\n\n</details>\n",
            fenced(&format!("$ {}\n{}", check.command, check.tail))
        );
    }
    text.push_str(&to_look_at(&record.findings));
    notes(&mut text, &record.notes);
    text.push_str(&refused::listed(&record.refused));
    if let Some(number) = closes {
        let _ = write!(text, "\nCloses #{number}\n");
    }
    let _ = write!(text, "\n<sub>{} · run `{run}`</sub>", spent(record, settings));
    text.trim_start().to_owned()
}

/// Returns the text of a pull/merge request whose item fewer people may read than the request itself.
fn discreet_body(closes: Option<u64>, run: RunId) -> String {
    let closing = closes.map(|number| format!("Closes #{number}\n\n")).unwrap_or_default();
    format!("What this is about can be read in its issue, by those who may see it.\n\n{closing}<sub>run `{run}`</sub>")
}

fn summary(text: &mut String, record: &Record) {
    if let Some(summary) = record.summary.as_deref().filter(|summary| !summary.trim().is_empty()) {
        let _ = write!(text, "\n{}\n", harmless(summary));
    }
}

/// Returns a number with its thousands set apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
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
    fn large_numbers_can_be_read() {
        assert_eq!(
            [7, 999, 1_000, 1_234_567].map(grouped),
            ["7", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn errors_become_sentences() {
        assert_eq!(sentence("the token is wrong"), "The token is wrong.");
        assert_eq!(sentence("Why?"), "Why?");
    }
}
