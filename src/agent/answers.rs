//! What people read in answer to what they said, and when a run waits for them. See also [`super::talk`].

use std::fmt::Write as _;

use super::record::{Held, PausedBy, Record, Saved};
use super::talk::{grouped, sentence, spent, work_so_far};
use super::workshop::Settings;
use crate::approval::Refusal;
use crate::approval::digest::Digest;
use crate::approval::extent::Extent;
use crate::markdown::code::{code, fenced};
use crate::markdown::sanitize::harmless;
use crate::task::command::Command;

/// To `resume` while the run is at work.
pub const NOT_PAUSED: &str = "It is at work already.";
/// To `resume` of a paused run.
pub const RESUMED: &str = "▶️ It goes on where it was.";
/// To `approve` with words below it: what is approved is not changed any more.
const APPROVED_AS_SHOWN: &str = "▶️ It is delivered as it was shown. What stands below your command changes nothing of it: \
     say it on the change request, or write `/agent deny` first where it must not be delivered like this.";
/// To `pause` of a run that waits.
pub const ALREADY_PAUSED: &str = "It waits already. `/agent resume` lets it go on.";
/// To `resume` of a run that was stopped by its budget.
pub const NEEDS_BUDGET: &str =
    "Its budget is used up: `/agent budget 500k` allows 500,000 more tokens and lets it go on.";
/// To `resume` of a run that waits for approval.
pub const NEEDS_APPROVAL: &str = "It waits for a decision: `/agent approve` or `/agent deny <reason>`.";
/// To `approve` and `deny` where nothing waits.
pub const NOTHING_TO_APPROVE: &str = "Nothing waits for approval.";
/// To `resume` while the pause file is there.
pub const ALL_PAUSED: &str = "All work is paused by the operator; it goes on when that ends.";

/// Answers an `approve` that counts. Words below it change nothing of what is delivered, and that is said.
pub fn approved(has_words: bool) -> &'static str {
    if has_words { APPROVED_AS_SHOWN } else { RESUMED }
}

/// Answers `budget`.
pub fn allowed(tokens: u64) -> String {
    format!("👍 {} more tokens, counted from now.", grouped(tokens))
}

/// Answers `help`, and what is no command.
pub fn help(command: &Command) -> String {
    let mut text = match command {
        Command::Unknown(unknown) if is_approval(unknown) => format!(
            "{} approves nothing: write `/agent approve`, or `/agent approve <digest>` with 8 to 64 digits of the digest that the \
             question names, and nothing else on that line. ",
            code(&format!("/agent {unknown}"))
        ),
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

fn is_approval(unknown: &str) -> bool {
    let verb = unknown.split_whitespace().next().unwrap_or_default();
    verb.eq_ignore_ascii_case("approve")
}

/// Answers an approval that does not count.
pub fn not_approved(refusal: Refusal, digest: &Digest) -> String {
    format!(
        "Nothing was approved: {refusal}. Read what would be pushed in the last question above, and write `/agent approve {}` in a \
         comment of its own.",
        digest.short()
    )
}

/// Answers a denial that does not count.
pub fn not_denied(refusal: Refusal) -> String {
    format!("Nothing was denied: {refusal}. Write `/agent deny <reason>` in a new comment, or `/agent stop`.")
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
        PausedBy::Objections(held) => question(held, record),
    };
    text.push_str(&work_so_far(paused.saved.as_ref()));
    let _ = write!(text, "\n<sub>{}</sub>", spent(record, settings));
    Some(text)
}

/// Returns the question whether a result may be pushed.
fn question(held: &Held, record: &Record) -> String {
    let mut text = "### 🔐 It needs your word\n\nThe work is done, and nothing of it was pushed".to_owned();
    if held.is_void {
        text.push_str("; what was approved before is not what would be pushed now");
    }
    text.push_str(":\n\n");
    for objection in &held.objections {
        let _ = writeln!(text, "- {objection}");
    }
    if let Some(more) = held.more.said() {
        let _ = writeln!(text, "- {more}");
    }
    let branch = record.base.as_ref().map_or("", |base| base.head_branch.as_str());
    let Extent { commits, files, lines } = held.extent;
    let _ = write!(
        text,
        "\nAn approval pushes {} to the branch {}: {} in {}, also what is not shown here. The branch can be deleted again; what the \
         forge runs because of the push cannot be undone.\n",
        number_of(commits as u64, "commit"),
        code(branch),
        number_of(lines, "changed line"),
        number_of(files as u64, "file")
    );
    match &held.question {
        Some(question) => {
            let _ = write!(
                text,
                "\n`/agent approve {}` delivers it as it is, `/agent deny <reason>` ends it.\n\n<sub>Question {}, digest \
                 `{}`</sub>\n",
                question.digest.short(),
                code(&question.id.to_string()),
                question.digest.as_str()
            );
        }
        None => text.push_str("\n`/agent approve` delivers it as it is, `/agent deny <reason>` ends it.\n"),
    }
    let _ = write!(
        text,
        "\n<details><summary>What would be pushed</summary>\n\n{}\n",
        fenced(&held.diff)
    );
    if held.unseen.files > 0 {
        let _ = write!(
            text,
            "\n**The difference is cut:** {} in {} not shown.\n",
            number_of(held.unseen.lines, "more changed line"),
            match held.unseen.files {
                1 => "1 file is".to_owned(),
                files => format!("{} files are", grouped(files as u64)),
            }
        );
    }
    text.push_str("\n</details>\n");
    text
}

fn number_of(number: u64, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(number))
}

/// Returns the final comment of a run that a person ended.
pub fn stopped(by: &str, saved: Option<&Saved>, record: &Record, settings: &Settings, trigger: &str) -> String {
    let mut text = format!("### ⏹️ Stopped\n\nAs {by} asked.\n");
    if let Some(reason) = &record.denial {
        let _ = write!(text, "\nThe result was not approved: {}\n", harmless(&sentence(reason)));
    }
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
