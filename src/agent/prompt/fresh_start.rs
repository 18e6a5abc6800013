//! The message with which a conversation begins anew, after the model went round in circles.

use std::fmt::Write as _;

use crate::agent::prompt::{checks, subtasks};
use crate::conversation::decode::files;
use crate::plan::Plan;

/// The facts from which a conversation begins anew.
pub(crate) struct FreshStart<'a> {
    /// The last attempts, one per line.
    pub(crate) attempts: &'a str,
    /// The files that the work has changed so far.
    pub(crate) tree: &'a str,
    /// Whether replies hold whole files as text.
    pub(crate) whole_files: bool,
    /// What people wrote while the model worked, as it was told.
    pub(crate) people: &'a [&'a str],
    /// The plan, if it is another than the one in the first message.
    pub(crate) new_plan: Option<&'a Plan>,
}

/// Returns the message with which the task begins again at the base.
pub(crate) fn from_the_base() -> String {
    format!(
        "That led nowhere, so every file is as it was at the beginning. Do it in another way. {}",
        files::FORM
    )
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
    for words in facts.people {
        let _ = writeln!(text, "\n{words}");
    }
    text.push_str("\nDo something else than what was tried. ");
    text.push_str(if facts.whole_files {
        files::FORM
    } else {
        "Read the file that is to change, then write it whole with write_file, mode overwrite; or finish and say what is open."
    });
    text
}
