//! The message with which a conversation begins anew, after the model went round in circles.

use std::fmt::Write as _;

use crate::agent::prompt::second_look::changed_files;
use crate::agent::prompt::{checks, subtasks};
use crate::conversation::decode::files;
use crate::evidence::difference::Touched;
use crate::plan::Plan;

/// The facts from which a conversation begins anew.
pub(crate) struct FreshStart<'a> {
    /// The last attempts, one per line.
    pub(crate) attempts: &'a str,
    /// The files that the work has changed so far.
    pub(crate) tree: &'a str,
    /// Whether replies hold whole files as text.
    pub(crate) whole_files: bool,
    /// The plan, if it is another than the one in the first message.
    pub(crate) new_plan: Option<&'a Plan>,
}

/// Returns the message with which the task begins again at the base. `new_plan` is the plan, if it
/// is another than the one in the first message.
pub(crate) fn from_the_base(new_plan: Option<&Plan>) -> String {
    let mut text =
        "You have tried this before, and the result was thrown away: every file is as it was at the beginning."
            .to_owned();
    if let Some(plan) = new_plan {
        let _ = write!(text, "\nThe plan is now:\n{}", subtasks(plan));
        checks(&mut text, plan);
    }
    let _ = write!(text, " Do it in another way. {}", files::FORM);
    text
}

/// Returns the message that tells that an earlier try is the work again. `summary` is what the
/// model said of it, and `touched` are the files that it changed.
pub(crate) fn taken_back(summary: Option<&str>, touched: &[Touched]) -> String {
    let mut text = "You have tried this several times. The try whose checks fail least is the work again; its files are in the project."
        .to_owned();
    if let Some(summary) = summary {
        let _ = write!(text, "\nYou said of it: {}", summary.trim());
    }
    let _ = write!(text, "\nIt changes:\n{}", changed_files(touched).trim_end());
    text
}

/// Returns the message with which a conversation that went round in circles starts anew.
pub(crate) fn text(facts: &FreshStart<'_>) -> String {
    let mut text = format!(
        "You repeated the same calls with the same results, so everything behind the task was taken out, and you begin anew. Tried \
         so far, with what came of it:\n{}\nThe work so far (git log, git status, git diff --stat):\n{}\n",
        facts.attempts,
        facts.tree.trim()
    );
    if let Some(plan) = facts.new_plan {
        let _ = write!(text, "\nThe plan is now:\n{}", subtasks(plan));
        checks(&mut text, plan);
    }
    text.push_str("\nDo something else than what was tried. ");
    text.push_str(if facts.whole_files {
        files::FORM
    } else {
        "Read the file that is to change, then write it whole with write_file, mode overwrite; or finish and say what is open."
    });
    text
}
