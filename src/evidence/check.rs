//! A command that was run to see whether the work is done, and its result.

use serde::{Deserialize, Serialize};

use super::failures::{self, Failure};

/// Most failures that are kept of one check; people and the model see them.
const MOST_SHOWN: usize = 10;
/// Most bytes that are kept of the end of a check's output.
const LONGEST_TAIL: usize = 4_000;

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// `None` if the command did not come to an end.
    pub exit_code: Option<i64>,
    /// The limit in seconds at which the command was ended, if it was.
    pub reached_limit: Option<u64>,
    pub output: String,
    pub failures: Vec<Failure>,
}

impl Ended {
    /// Reads the failures from `output`. `root` is the folder of the project.
    pub fn new(exit_code: Option<i64>, output: String, root: &str) -> Self {
        let failures = failures::read(&output, root);
        Self {
            exit_code,
            reached_limit: None,
            output,
            failures,
        }
    }

    /// Tells whether the program that should have done the work is missing: nothing was tested, and
    /// nothing failed.
    pub fn did_not_start(&self) -> bool {
        let lines = || {
            self.output
                .lines()
                .filter(|line| !line.starts_with('[') && !line.trim().is_empty())
        };
        match self.exit_code {
            Some(126 | 127) => true,
            // Python itself starts, and its only line says that the module is missing.
            Some(1) => {
                lines().count() == 1
                    && lines().any(|line| line.contains("python") && line.contains(": No module named "))
            }
            _ => false,
        }
    }
}

/// A check and its result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Checked {
    pub command: String,
    pub expected: i64,
    /// `None` if the command did not come to an end.
    pub exit_code: Option<i64>,
    /// The limit in seconds at which the command was ended, if it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reached_limit: Option<u64>,
    /// The first failures that the output names; after [`Checked::weigh`] only new ones.
    pub failures: Vec<Failure>,
    /// Number of further failures that the output names.
    pub more: usize,
    /// Number of other failures that existed before anything was changed.
    pub old: usize,
    /// The end of the output.
    pub tail: String,
    /// The reason why the check does not count against the work although it did not pass.
    pub excuse: Option<Excuse>,
    /// Whether it passed in the container the model worked in, and failed in a new one.
    pub passes_only_at_work: bool,
}

/// The reason why a check that did not pass does not count against the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Excuse {
    /// The same failures existed before anything was changed.
    FailedBefore,
    /// The program that runs the tests is missing.
    DidNotStart,
}

/// The result of the project's tests before anything was changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Before {
    pub command: String,
    pub exit_code: Option<i64>,
    /// The failures, each by its [`Failure::subject`].
    pub subjects: Vec<String>,
}

impl Checked {
    pub fn new(command: &str, expected: i64, ended: &Ended) -> Self {
        Self {
            command: command.to_owned(),
            expected,
            exit_code: ended.exit_code,
            reached_limit: ended.reached_limit,
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

    /// Tells whether the check counts against the work.
    pub fn is_open(&self) -> bool {
        !self.passed() && self.excuse.is_none()
    }

    /// Compares the check with the result of the same command before anything was changed: failures
    /// from then are no fault of the work, and new ones are named first. A command that did not end
    /// by itself is never excused.
    pub fn weigh(&mut self, ended: &Ended, before: &Before) {
        let failed_then = before.exit_code.is_some_and(|code| code != self.expected);
        if self.passed() || self.exit_code.is_none() || !failed_then {
            return;
        }
        let is_new = |failure: &&Failure| !before.subjects.contains(&failure.subject());
        let new: Vec<&Failure> = ended.failures.iter().filter(is_new).collect();
        // Where either side has no recognised failures, only an equal exit code counts as the same.
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

/// Returns the end of `text` from the beginning of a line on, and says how much was left out.
fn tail(text: &str, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let start = text.ceil_char_boundary(text.len() - max_bytes);
    // If only the last line break follows, nothing would be left: then the line itself is cut.
    let start = text[start..].find('\n').map_or(start, |end| start + end + 1);
    let start = if start == text.len() {
        text.ceil_char_boundary(text.len() - max_bytes)
    } else {
        start
    };
    format!("[... {start} bytes before ...]\n{}", &text[start..])
}
