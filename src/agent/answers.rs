//! What people read in answer to what they said, and when a run waits for them. See also [`super::talk`].

use std::fmt::Write as _;

use super::record::{PausedBy, Record, Saved};
use super::talk::{grouped, sentence, spent, work_so_far};
use super::workshop::Settings;
use crate::markdown::code::{code, fenced};
use crate::markdown::sanitize::harmless;
use crate::task::command::Command;

/// To `resume` while the run is at work.
pub const NOT_PAUSED: &str = "It is at work already.";
/// To `resume` of a paused run.
pub const RESUMED: &str = "▶️ It goes on where it was.";
/// To `approve` with words below it: what is approved is not changed any more.
pub const APPROVED_AS_SHOWN: &str = "▶️ It is delivered as it was shown. What stands below your command changes nothing of it: \
     say it on the change request, or write `/agent deny` first where it must not be delivered like this.";
/// To `pause` of a run that waits.
pub const ALREADY_PAUSED: &str = "It waits already. `/agent resume` lets it go on.";
/// To `resume` of a run that was stopped by its budget.
pub const NEEDS_BUDGET: &str =
    "Its budget is used up: `/agent budget 500k` allows 500,000 more tokens and lets it go on.";
/// To `resume` of a run that waits for approval.
pub const NEEDS_APPROVAL: &str = "It waits for a decision: `/agent approve` or `/agent deny`.";
/// To `approve` and `deny` where nothing waits.
pub const NOTHING_TO_APPROVE: &str = "Nothing waits for approval.";
/// To `resume` while the pause file is there.
pub const ALL_PAUSED: &str = "All work is paused by the operator; it goes on when that ends.";

/// Answers `budget`.
pub fn allowed(tokens: u64) -> String {
    format!("👍 {} more tokens, counted from now.", grouped(tokens))
}

/// Answers `help`, and what is no command.
pub fn help(command: &Command) -> String {
    let mut text = match command {
        Command::Unknown(unknown) => format!("{} is no command. ", code(&format!("/agent {unknown}"))),
        _ => String::new(),
    };
    text.push_str(
        "These are, at the very beginning of the first line of a comment, for people who may write to the repository:\n\n\
         | | |\n|---|---|\n\
         | `/agent stop` | end the work for good; what was done stays on a branch |\n\
         | `/agent pause` | set it aside at the next safe point |\n\
         | `/agent resume` | let it go on |\n\
         | `/agent budget 500k` | allow so many more tokens |\n\
         | `/agent approve`, `/agent deny <reason>` | decide on what waits for it |\n\n\
         Any other comment is read before the next step, and so is what stands below a command.",
    );
    text
}

/// Returns the comment on a run that waits for people; `None` where the progress comment says enough.
pub fn set_aside(record: &Record, settings: &Settings) -> Option<String> {
    let paused = record.paused.as_ref()?;
    let mut text = match &paused.by {
        PausedBy::File => return None,
        PausedBy::Person(name) => format!(
            "### ⏸️ Paused\n\nAs {name} asked. `/agent resume` lets it go on where it is, `/agent stop` ends it.\n"
        ),
        PausedBy::Limit(limit) => format!(
            "### ⏸️ Paused: a limit is reached\n\n{}\n\n`/agent budget 500k` allows 500,000 more tokens and lets it go on, \
             `/agent stop` ends it.\n",
            harmless(&sentence(limit))
        ),
        PausedBy::Question(question) => format!(
            "### ❓ A question\n\n{}\n\nThe work goes on when somebody who may write to the repository answers below; \
             `/agent resume` lets it go on without an answer, `/agent stop` ends it.\n",
            harmless(question)
        ),
        PausedBy::Objections(held) => {
            let mut text =
                "### 🔐 It needs your word\n\nThe work is done, and nothing of it was pushed:\n\n".to_owned();
            for objection in &held.objections {
                let _ = writeln!(text, "- {objection}");
            }
            let _ = write!(
                text,
                "\n`/agent approve` delivers it as it is, `/agent deny` ends it.\n\n<details><summary>What would be \
                 pushed</summary>\n\n{}\n</details>\n",
                fenced(&held.diff)
            );
            text
        }
    };
    text.push_str(&work_so_far(paused.saved.as_ref()));
    let _ = write!(text, "\n<sub>{}</sub>", spent(record, settings));
    Some(text)
}

/// Returns the final comment of a run that a person ended.
pub fn stopped(by: &str, saved: Option<&Saved>, record: &Record, settings: &Settings, trigger: &str) -> String {
    let mut text = format!("### ⏹️ Stopped\n\nAs {by} asked.\n");
    text.push_str(&work_so_far(saved));
    let _ = write!(text, "\nTo start a new run, put the label `{trigger}` on again.");
    if record.turns > 0 {
        let _ = write!(text, "\n\n<sub>{}</sub>", spent(record, settings));
    }
    text
}

/// Answers `stop` on a pull/merge request that nobody works on.
pub fn no_longer_followed(by: &str, trigger: &str) -> String {
    format!(
        "### ⏹️ Stopped\n\nAs @{by} asked: reviews and checks of this are left to people from here. To have work done on it again, \
         put the label `{trigger}` on."
    )
}
