//! Evidence for a change and against it: the results of commands, and the diff itself.
//!
//! Plain decisions over plain text: commands are run and diffs are made elsewhere.

pub mod test_command; // how a project is tested, seen from its files
pub mod failures; // what fails and where, read out of a command's output
pub mod check; // a command that was run to see whether the work is done, and its result
pub mod missing_imports; // imports that a check found missing
pub mod digest; // the report to the model
pub mod repair; // how often the model may try to fix it
pub mod tries; // tries at a task, each from the base
pub mod language; // how tests, assertions and placeholders are written
pub mod test_lines; // the lines of tests at which checks failed
pub mod difference; // what a reviewer of a diff should look at
pub mod demands; // what a task asks for
pub mod unmentioned; // the parts of a task that no test mentions

use regex::Regex;

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and every one of them is compiled by a test"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this module")
}
