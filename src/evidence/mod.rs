//! What speaks for a change and against it: what commands say of it, and what the difference itself
//! shows.
//!
//! Plain decisions over plain text. Running commands and reading differences is for others to do.

pub mod test_command; // how a project is tested, seen from its files
pub mod failures; // what fails and where, read out of a command's output
pub mod check; // a command that was run to see whether the work is done
pub mod digest; // what the model is told of it
pub mod repair; // how often it may try to mend it
mod language; // how tests, assertions and the like are written
pub mod difference; // what a change shows besides

use regex::Regex;

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and every one of them is compiled by a test"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this module")
}
