//! A command that was run to see whether the work is done, and what it gave.

use serde::{Deserialize, Serialize};

use super::failures::{self, Failure};

/// Most failures that are kept of one check, for people and for the model.
const MOST_SHOWN: usize = 10;
/// Most of the end of its output.
const LONGEST_TAIL: usize = 4_000;

/// What a command gave when it was run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// `None` where the command did not come to an end.
    pub exit_code: Option<i64>,
    pub output: String,
    pub failures: Vec<Failure>,
}

impl Ended {
    /// Reads the failures out of `output`. `root` is the folder the project lies in.
    pub fn new(exit_code: Option<i64>, output: String, root: &str) -> Self {
        let failures = failures::read(&output, root);
        Self {
            exit_code,
            output,
            failures,
        }
    }

    /// Tells whether the program that should have done the work is not there: nothing was tested,
    /// and nothing failed.
    pub fn did_not_start(&self) -> bool {
        let lines = || {
            self.output
                .lines()
                .filter(|line| !line.starts_with('[') && !line.trim().is_empty())
        };
        match self.exit_code {
            Some(126 | 127) => true,
            // Python says so itself, on its only line.
            Some(1) => {
                lines().count() == 1
                    && lines().any(|line| line.contains("python") && line.contains(": No module named "))
            }
            _ => false,
        }
    }
}

/// A check and what it gave.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checked {
    pub command: String,
    pub expected: i64,
    /// `None` where the command did not come to an end.
    pub exit_code: Option<i64>,
    /// The first failures its output names.
    pub failures: Vec<Failure>,
    /// How many more it names.
    pub more: usize,
    /// How many others failed before anything was changed.
    pub old: usize,
    /// The end of its output.
    pub tail: String,
    /// Why it does not count against the work that it did not pass.
    pub excuse: Option<Excuse>,
    /// It passed in the container that the model worked in, and not in a new one.
    pub passes_only_at_work: bool,
}

/// Why a check that did not pass does not count against the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excuse {
    /// The same failed before anything was changed.
    FailedBefore,
    /// What runs the tests is not there.
    DidNotStart,
}

/// What the project's tests gave before anything was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    pub command: String,
    pub exit_code: Option<i64>,
    /// What failed, by [`Failure::subject`].
    pub subjects: Vec<String>,
}

impl Checked {
    pub fn new(command: &str, expected: i64, ended: &Ended) -> Self {
        Self {
            command: command.to_owned(),
            expected,
            exit_code: ended.exit_code,
            failures: ended.failures.iter().take(MOST_SHOWN).cloned().collect(),
            more: ended.failures.len().saturating_sub(MOST_SHOWN),
            old: 0,
            tail: tail(&ended.output, LONGEST_TAIL),
            excuse: None,
            passes_only_at_work: false,
        }
    }

    pub fn passed(&self) -> bool {
        self.exit_code == Some(self.expected)
    }

    /// Tells whether it stands against the work.
    pub fn is_open(&self) -> bool {
        !self.passed() && self.excuse.is_none()
    }

    /// Compares with what the same command gave before anything was changed: what failed then is no
    /// fault of the work, and what did not is named first. A command that did not come to an end is
    /// never excused.
    pub fn weigh(&mut self, ended: &Ended, before: &Before) {
        let failed_then = before.exit_code.is_some_and(|code| code != self.expected);
        if self.passed() || self.exit_code.is_none() || !failed_then {
            return;
        }
        let is_new = |failure: &&Failure| !before.subjects.contains(&failure.subject());
        let new: Vec<&Failure> = ended.failures.iter().filter(is_new).collect();
        // Where nothing could be recognised on one side, only the same end counts as the same.
        let can_compare = !ended.failures.is_empty() && !before.subjects.is_empty();
        if new.is_empty() && (can_compare || self.exit_code == before.exit_code) {
            self.excuse = Some(Excuse::FailedBefore);
        } else if can_compare {
            self.old = ended.failures.len() - new.len();
            self.more = new.len().saturating_sub(MOST_SHOWN);
            self.failures = new.into_iter().take(MOST_SHOWN).cloned().collect();
        }
    }
}

impl Before {
    pub fn new(command: &str, ended: &Ended) -> Self {
        Self {
            command: command.to_owned(),
            exit_code: ended.exit_code,
            subjects: ended.failures.iter().map(Failure::subject).collect(),
        }
    }
}

/// Returns the end of `text` from the beginning of a line on, and says what was left out.
fn tail(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let start = text.ceil_char_boundary(text.len() - max_bytes);
    // Only a line that is hardly longer than what is kept would leave nothing of it.
    let start = text[start..].find('\n').map_or(start, |end| start + end + 1);
    let start = if start == text.len() {
        text.ceil_char_boundary(text.len() - max_bytes)
    } else {
        start
    };
    format!("[... {start} bytes before ...]\n{}", &text[start..])
}
