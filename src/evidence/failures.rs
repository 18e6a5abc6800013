//! Reads from a command's output what fails and where: rustc and cargo test, pytest and unittest,
//! jest, vitest, mocha and node's own runner, go, javac, maven and gradle, tsc, gcc, and whatever
//! else writes `file:line: message`.
//!
//! Each line is looked up in one table of patterns, so the time is linear in the length of the
//! output. A failure that is not recognised does no harm: the end of the output is shown as well.

mod patterns;

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde::{Deserialize, Serialize};

use super::pattern;
use patterns::{Found, Role, table};

/// Most failures that are read; later ones seldom have another cause.
const MOST_FAILURES: usize = 100;
/// Longest text of one failure, in bytes.
const LONGEST_TEXT: usize = 240;
/// Longest part of a line that is read, in bytes.
const LONGEST_LINE: usize = 1_000;

/// A test that fails, or an error of a compiler.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// The test's name; empty for an error of a compiler.
    pub name: String,
    pub place: Option<Place>,
    pub message: String,
}

/// Place of a failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Relative to the project's folder if it is inside.
    pub path: String,
    pub line: Option<u32>,
}

impl Failure {
    /// Identifies the failure, even if its line has moved.
    pub fn subject(&self) -> String {
        if !self.name.is_empty() {
            return self.name.clone();
        }
        let path = self.place.as_ref().map_or("", |place| place.path.as_str());
        format!("{path}: {}", self.message)
    }

    /// Tells whether the failure has a place or a message: only these help to fix it.
    fn says_something(&self) -> bool {
        self.place.is_some() || !self.message.is_empty()
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = self.place.as_ref().map(|place| match place.line {
            Some(line) => format!("{}:{line}", place.path),
            None => place.path.clone(),
        });
        let parts = [place.unwrap_or_default(), self.name.clone()];
        let parts: Vec<&str> = parts
            .iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        let head = parts.join(" ");
        match (head.is_empty(), self.message.is_empty()) {
            (_, true) => formatter.write_str(&head),
            (true, false) => formatter.write_str(&self.message),
            (false, false) => write!(formatter, "{head}: {}", self.message),
        }
    }
}

/// Returns the failures in `output`, in its order. `root` is the folder of the project.
pub fn read(output: &str, root: &str) -> Vec<Failure> {
    let output = without_colours(output);
    let mut reader = Reader::new(root);
    for line in output.lines() {
        let line = line.trim_end();
        reader.line(&line[..line.floor_char_boundary(LONGEST_LINE)]);
    }
    reader.failures.retain(Failure::says_something);
    reader.failures
}

/// Removes a terminal's colour sequences.
pub(super) fn without_colours(text: &str) -> String {
    static SEQUENCE: LazyLock<Regex> = LazyLock::new(|| pattern("\u{1b}\\[[0-9;?]*[A-Za-z]"));
    SEQUENCE.replace_all(text, "").into_owned()
}

struct Reader<'a> {
    root: &'a str,
    failures: Vec<Failure>,
    /// Indexes of failures by name, or by the key under which the runner repeats them.
    known: HashMap<String, usize>,
    /// The failure that the following lines are about.
    open: Option<usize>,
    /// Whether the message of the open failure is on the next line.
    message_follows: bool,
}

impl<'a> Reader<'a> {
    fn new(root: &'a str) -> Self {
        Self {
            root,
            failures: Vec::new(),
            known: HashMap::new(),
            open: None,
            message_follows: false,
        }
    }

    fn line(&mut self, line: &str) {
        if std::mem::take(&mut self.message_follows) && !line.trim().is_empty() {
            self.add(None, line.trim());
            return;
        }
        let Some(Found {
            role,
            message_follows,
            parts,
        }) = table().find(line)
        else {
            return;
        };
        let message = parts.name("message").map_or("", |part| part.as_str().trim());
        let place = self.place(&parts);
        match role {
            Role::Names => self.names(&parts, place, message),
            Role::Begins => {
                self.open(Failure::default());
                self.add(place, message);
            }
            Role::Adds => self.add(place, message),
            Role::Replaces => {
                if let (Some(open), Some(place)) = (self.open, place) {
                    self.failures[open].place = Some(place);
                }
            }
            Role::Traces => {
                if self.open.is_none_or(|open| self.failures[open].says_something()) {
                    self.open(Failure::default());
                }
            }
            Role::Stands => self.stands(place, message),
            Role::Closes => self.open = None,
        }
        self.message_follows = message_follows;
    }

    fn names(&mut self, parts: &Captures<'_>, place: Option<Place>, message: &str) {
        let name = parts.name("name").map_or("", |part| part.as_str().trim());
        let key = parts.name("key").map_or(name, |part| part.as_str());
        // Pytest's summary says `tests/a.py::Case::test` where its heading said `Case.test`.
        let earlier = key.split_once("::").map(|(_, rest)| rest.replace("::", "."));
        let keys = [Some(key.to_owned()), earlier];
        let same = keys.iter().flatten().find_map(|key| self.known.remove(key));
        if let Some(same) = same {
            self.open = Some(same);
            if parts.name("key").is_none() {
                self.failures[same].name = short(name);
            }
        } else {
            self.open(Failure {
                name: short(name),
                ..Failure::default()
            });
        }
        if let Some(open) = self.open {
            self.known.insert(key.to_owned(), open);
        }
        self.add(place, message);
    }

    /// Records a line that is a complete failure: it completes the open one if that has no place,
    /// else it is a new one.
    fn stands(&mut self, place: Option<Place>, message: &str) {
        let is_remark = ["warning", "note", "help", "info"]
            .iter()
            .any(|word| message.to_ascii_lowercase().starts_with(word))
            || message.contains("Warning");
        if place.is_none() || is_remark {
            return;
        }
        if self.open.is_none_or(|open| self.failures[open].place.is_some()) {
            self.open(Failure::default());
        }
        self.add(place, message);
    }

    fn open(&mut self, failure: Failure) {
        if self.failures.len() == MOST_FAILURES {
            self.open = None;
            return;
        }
        self.open = Some(self.failures.len());
        self.failures.push(failure);
    }

    /// Adds to the open failure what it lacks.
    fn add(&mut self, place: Option<Place>, message: &str) {
        let Some(open) = self.open else { return };
        let failure = &mut self.failures[open];
        let has_line = |place: &Option<Place>| place.as_ref().is_some_and(|place| place.line.is_some());
        if failure.place.is_none() || (!has_line(&failure.place) && has_line(&place)) {
            failure.place = place.or_else(|| failure.place.take());
        }
        if failure.message.is_empty() {
            failure.message = short(message);
        }
    }

    /// Returns the place that a line names, unless it is outside of the project or in a dependency.
    fn place(&self, parts: &Captures<'_>) -> Option<Place> {
        let path = parts.name("path")?.as_str();
        let path = path.strip_prefix("file://").unwrap_or(path);
        Some(Place {
            path: short(within(path, self.root)?),
            line: parts.name("line").and_then(|line| line.as_str().parse().ok()),
        })
    }
}

/// Returns a path as it is within the project, unless it is outside of it or in a dependency.
pub(super) fn within<'path>(path: &'path str, root: &str) -> Option<&'path str> {
    let below_root = path.strip_prefix(root).and_then(|rest| rest.strip_prefix('/'));
    let path = below_root.unwrap_or(path);
    let path = path.strip_prefix("./").unwrap_or(path);
    let is_foreign = path.starts_with(['/', '<']) || path.starts_with("node:") || path.contains("node_modules/");
    (!is_foreign && !path.contains("site-packages/")).then_some(path)
}

fn short(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST_TEXT)].to_owned()
}

#[cfg(test)]
mod tests;
