//! Finds what a reviewer of a diff should look at: placeholders, and tests that are gone, are no
//! longer run or check less.
//!
//! The unified diff is read once, line by line. Code that only moved is no finding: what is removed
//! in one place and added in another cancels out, and so does a test that only has another name.

mod configuration; // how the tests are run
mod hunks;
mod renames; // tests that only have another name

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::language::{asserts, is_code, is_placeholder, is_test_file, skips};
use crate::plain::counted;
use configuration::Configuration;
use hunks::{Line, Side, Walk};
use renames::Bodies;

/// Most findings that are returned; a reviewer who has read so many knows enough.
const MOST_FINDINGS: usize = 50;
/// Longest text of a finding, in bytes.
const LONGEST_TEXT: usize = 160;

/// Something a reviewer should look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub kind: Kind,
    pub path: String,
    /// Line in the new file; `None` where the line is gone.
    pub line: Option<u32>,
    /// The line, or the name of the test.
    pub text: String,
}

/// The kind of a [`Finding`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A placeholder says that something is still to be done.
    Placeholder,
    /// A test is gone, and none was added to its file.
    TestDeleted,
    /// A test is there but is not run.
    TestSkipped,
    /// A test is gone and others were added, or a test file lost assertions.
    TestLoosened,
    /// Configuration changed that decides which tests are run, and how they end.
    TestConfiguration,
}

impl Kind {
    /// Tells whether tests are no longer run: then passing proves less than it seems.
    pub fn takes_tests_away(self) -> bool {
        matches!(self, Self::TestDeleted | Self::TestSkipped)
    }

    fn in_words(self) -> &'static str {
        match self {
            Self::Placeholder => "a placeholder is left",
            Self::TestDeleted => "a test was deleted",
            Self::TestSkipped => "a test is skipped",
            Self::TestLoosened => "a test checks less than before",
            Self::TestConfiguration => "how the tests are run was changed",
        }
    }
}

impl Finding {
    /// Returns the place and the kind, without words of whoever wrote the code.
    pub fn heading(&self) -> (String, &'static str) {
        let place = match self.line {
            Some(line) => format!("{}:{line}", self.path),
            None => self.path.clone(),
        };
        (place, self.kind.in_words())
    }
}

/// Returns the lines of a diff without its secrets, `clean`, each with the sign that it has in
/// `diff`. A secret of several lines takes their signs with it, and without these the lines after
/// it would count for others than they are.
pub fn with_signs(diff: &str, clean: &str) -> String {
    let mut signed = String::with_capacity(clean.len());
    for (line, clean) in diff.lines().zip(clean.lines()) {
        let sign = line.get(..1).filter(|sign| ["-", "+", " "].contains(sign));
        signed.push_str(sign.filter(|sign| !clean.starts_with(*sign)).unwrap_or_default());
        signed.push_str(clean);
        signed.push('\n');
    }
    signed
}

/// Returns what a reviewer of `diff` should look at, worst first.
pub fn inspect(diff: &str) -> Vec<Finding> {
    let mut inspection = Inspection::default();
    let mut walk = Walk::default();
    for line in diff.lines() {
        walk.step(line, |line| inspection.line(line));
    }
    for path in walk.deleted() {
        inspection.deleted_file(path);
    }
    inspection.findings()
}

/// A file that a diff changes, with the numbers of its lines that are added and removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Touched {
    pub path: String,
    pub added: usize,
    pub removed: usize,
}

/// Returns the files whose lines `diff` changes, in its order.
pub fn touched(diff: &str) -> Vec<Touched> {
    let mut touched: Vec<Touched> = Vec::new();
    let mut walk = Walk::default();
    for line in diff.lines() {
        walk.step(line, |line| {
            if line.is_context {
                return;
            }
            if touched.last().is_none_or(|last| last.path != line.path) {
                touched.push(Touched {
                    path: line.path.to_owned(),
                    added: 0,
                    removed: 0,
                });
            }
            if let Some(last) = touched.last_mut() {
                match line.side {
                    Side::Old => last.removed += 1,
                    Side::New => last.added += 1,
                }
            }
        });
    }
    touched
}

/// Returns the question about the findings that the model is asked, once.
pub fn question(findings: &[Finding]) -> String {
    let mut text = "The program looked at what you changed and found what a reviewer will ask about:\n".to_owned();
    for finding in findings {
        let (place, what) = finding.heading();
        let _ = writeln!(text, "- {place}: {what}: {}", finding.text);
    }
    text.push_str(
        "\nIf one of these is a shortcut, do it properly: finish what is unfinished, bring tests back as strict as they were. What the \
         task asks for may stay. Then finish again and say why; what stays is named in the pull request.",
    );
    text
}

#[derive(Default)]
struct Inspection {
    /// Candidates for findings, one line each.
    marks: Vec<Finding>,
    /// Number of times that each marked line was removed, minus the times it was added.
    gone: HashMap<(Kind, String), i64>,
    /// Tests on the old side less those on the new one, by name, with the file of the test.
    tests: BTreeMap<String, (i64, String)>,
    bodies: Bodies,
    /// Number of tests that were added to each file.
    tests_added: BTreeMap<String, usize>,
    /// Assertions that were removed from test files, and those that were added: file and text.
    assertions_gone: Vec<(String, String)>,
    assertions_added: Vec<(String, String)>,
    configuration: Configuration,
}

impl Inspection {
    fn line(&mut self, line: &Line<'_>) {
        self.configuration.line(line);
        if !is_code(line.path) {
            return;
        }
        self.bodies.line(line);
        if let Some(name) = &line.test {
            let count = self
                .tests
                .entry(name.clone())
                .or_insert_with(|| (0, line.path.to_owned()));
            match line.side {
                Side::Old => *count = (count.0 + 1, line.path.to_owned()),
                Side::New => count.0 -= 1,
            }
        }
        if line.is_context {
            return;
        }
        let kinds = [
            (Kind::Placeholder, is_placeholder(line.path, line.text, line.before)),
            (Kind::TestSkipped, skips(line.text)),
        ];
        for (kind, _) in kinds.into_iter().filter(|(_, is_so)| *is_so) {
            match line.side {
                Side::Old => *self.gone.entry((kind, line.text.trim().to_owned())).or_default() += 1,
                Side::New => self.marks.push(Finding {
                    kind,
                    path: line.path.to_owned(),
                    line: Some(line.number),
                    text: line.text.trim().to_owned(),
                }),
            }
        }
        if line.side == Side::New && line.test.is_some() {
            *self.tests_added.entry(line.path.to_owned()).or_default() += 1;
        }
        if (is_test_file(line.path) || line.is_among_tests) && asserts(line.text) {
            let assertions = match line.side {
                Side::Old => &mut self.assertions_gone,
                Side::New => &mut self.assertions_added,
            };
            assertions.push((line.path.to_owned(), line.text.trim().to_owned()));
        }
    }

    /// Counts a deleted file of tests in a language whose tests are not recognised.
    fn deleted_file(&mut self, path: &str) {
        let is_known = self.tests.values().any(|(_, file)| file == path);
        if is_test_file(path) && !is_known {
            self.tests.insert(format!("the whole of {path}"), (1, path.to_owned()));
        }
    }

    fn findings(mut self) -> Vec<Finding> {
        std::mem::take(&mut self.bodies).settle(&mut self.tests, &mut self.tests_added);
        let mut findings = self.tests_gone();
        let shorter = self.files_that_assert_less();
        // The assertions of a deleted test went with it.
        let is_explained = |path: &String| findings.iter().any(|finding| finding.path == *path);
        let loosened: Vec<Finding> = shorter
            .into_iter()
            .filter(|(path, _)| !is_explained(path))
            .map(loosened)
            .collect();
        findings.extend(loosened);
        findings.extend(self.marks_that_came());
        findings.extend(std::mem::take(&mut self.configuration).into_findings());
        // The sort is stable: within a kind the order of the diff stays.
        findings.sort_by_key(|finding| (!finding.kind.takes_tests_away(), finding.kind));
        findings.truncate(MOST_FINDINGS);
        for finding in &mut findings {
            let end = finding.text.floor_char_boundary(LONGEST_TEXT);
            finding.text.truncate(end);
        }
        findings
    }

    fn tests_gone(&mut self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (name, (count, path)) in self.tests.iter().filter(|(_, (count, _))| *count > 0) {
            // Each added test may be the replacement of one that is gone.
            let replacements = self.tests_added.entry(path.clone()).or_default();
            let (kind, text) = match *replacements {
                0 => (Kind::TestDeleted, name.clone()),
                _ => (Kind::TestLoosened, format!("{name} (gone; others came)")),
            };
            *replacements = replacements.saturating_sub(usize::try_from(*count).unwrap_or(1));
            findings.push(Finding {
                kind,
                path: path.clone(),
                line: None,
                text,
            });
        }
        findings
    }

    /// Returns the files with fewer assertions than before, and how many fewer. An assertion that
    /// was added elsewhere counts as moved.
    fn files_that_assert_less(&mut self) -> BTreeMap<String, usize> {
        let mut came: HashMap<&str, Vec<&str>> = HashMap::new();
        for (path, text) in &self.assertions_added {
            came.entry(text).or_default().push(path);
        }
        let gone: Vec<&str> = self
            .assertions_gone
            .iter()
            .filter(|(_, text)| came.get_mut(text.as_str()).is_none_or(|paths| paths.pop().is_none()))
            .map(|(path, _)| path.as_str())
            .collect();
        let mut less: BTreeMap<String, usize> = BTreeMap::new();
        for path in gone {
            *less.entry(path.to_owned()).or_default() += 1;
        }
        for path in came.into_values().flatten() {
            less.entry(path.to_owned())
                .and_modify(|count| *count = count.saturating_sub(1));
        }
        less.retain(|_, count| *count > 0);
        less
    }

    fn marks_that_came(&mut self) -> Vec<Finding> {
        let mut marks = std::mem::take(&mut self.marks);
        marks.retain(|mark| {
            let gone = self.gone.entry((mark.kind, mark.text.clone())).or_default();
            *gone -= 1;
            *gone < 0
        });
        marks
    }
}

fn loosened((path, count): (String, usize)) -> Finding {
    let text = format!("{} less", counted(count, "assertion"));
    Finding {
        kind: Kind::TestLoosened,
        path,
        line: None,
        text,
    }
}

#[cfg(test)]
mod tests;
