//! Finds changes to what decides which tests are run and how they end: a passing run proves less if
//! the work brought its own rules.
//!
//! Each file is named once. In a file that only configures a test runner every change counts; in
//! one that configures other things as well, only lines about tests do.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;

use super::hunks::{Line, Side};
use super::{Finding, Kind};
use crate::evidence::language::is_foreign;
use crate::evidence::pattern;

/// The part of a file that is about tests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Subject {
    /// The whole file.
    Tests,
    /// The sections and keys of test runners, which count in a new file too.
    Sections,
    /// Single lines or a target, which do not count if the whole file is new: nothing was run by it
    /// before.
    Parts,
}

/// The findings so far, and the position of the walk.
#[derive(Default)]
pub(super) struct Configuration {
    /// The line that is shown of each file: its number on the new side, and its text.
    found: BTreeMap<String, (Option<u32>, String)>,
    /// File, line on the new side, and section or target of the line that was read last.
    path: String,
    number: u32,
    section: String,
}

impl Configuration {
    pub(super) fn line(&mut self, line: &Line<'_>) {
        let Some(subject) = subject(line.path) else { return };
        self.follow(line);
        if line.is_context || line.text.trim().is_empty() {
            return;
        }
        let is_about_tests = match subject {
            Subject::Tests => true,
            Subject::Sections => is_section_of_tests(&self.section) || is_key_of_tests(line.text),
            Subject::Parts if line.is_in_new_file => false,
            Subject::Parts => is_part_of_tests(line.path, line.text) || self.is_in_target_of_tests(line),
        };
        if !is_about_tests {
            return;
        }
        let number = (line.side == Side::New).then_some(line.number);
        let found = self.found.entry(line.path.to_owned());
        let known = found.or_insert_with(|| (number, line.text.trim().to_owned()));
        if known.0.is_none() && number.is_some() {
            // A line that is there now says more than one that is gone.
            *known = (number, line.text.trim().to_owned());
        }
    }

    pub(super) fn into_findings(self) -> impl Iterator<Item = Finding> {
        self.found.into_iter().map(|(path, (line, text))| Finding {
            kind: Kind::TestConfiguration,
            path,
            line,
            text,
        })
    }

    /// Notes the section of the line, as far as the hunk shows it.
    fn follow(&mut self, line: &Line<'_>) {
        static HEAD: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\[+([^\]]+)\]|^([A-Za-z][\w.%/ -]*):(?:[^=]|$)"));
        if self.path != line.path {
            line.path.clone_into(&mut self.path);
            self.section.clear();
        }
        if line.side == Side::New {
            if line.number > self.number.saturating_add(1) || line.number < self.number {
                self.section.clear();
            }
            self.number = line.number;
        }
        if let Some(head) = HEAD.captures(line.text) {
            let name = head.get(1).or_else(|| head.get(2));
            self.section = name.map(|name| name.as_str().to_owned()).unwrap_or_default();
        }
    }

    fn is_in_target_of_tests(&self, line: &Line<'_>) -> bool {
        let is_makefile = file_name(line.path).to_ascii_lowercase().ends_with("makefile");
        let target = self.section.to_ascii_lowercase();
        let is_of_target = line.text.starts_with('\t') || line.text.starts_with(&self.section);
        is_makefile && is_of_target && ["test", "check"].iter().any(|word| target.contains(word))
    }
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn subject(path: &str) -> Option<Subject> {
    static TESTS: LazyLock<Regex> = LazyLock::new(|| {
        pattern(concat!(
            r"^(?:conftest\.py|\.?pytest\.(?:ini|toml)|\.coveragerc|(?:site|user)customize\.py|.*\.pth|noxfile\.py",
            r"|(?:jest|vitest|playwright|cypress|karma|ava|wdio)\.(?:config|conf|setup|workspace)\..*|\.mocharc.*|\.nycrc.*",
            r"|phpunit\.xml.*|\.rspec|testng\.xml|junit-platform\.properties|nextest\.toml)$"
        ))
    });
    if is_foreign(path) {
        return None;
    }
    match file_name(path) {
        "pyproject.toml" | "setup.cfg" | "tox.ini" => Some(Subject::Sections),
        "package.json" | "Makefile" | "makefile" | "GNUmakefile" | "pom.xml" | "build.gradle" | "build.gradle.kts"
        | "Cargo.toml" | "build.sbt" => Some(Subject::Parts),
        name if TESTS.is_match(name) => Some(Subject::Tests),
        _ => None,
    }
}

fn is_section_of_tests(section: &str) -> bool {
    let section = section.trim().trim_start_matches("tool").trim_start_matches(['.', ':']);
    ["pytest", "testenv", "tox", "coverage", "nox", "unittest"]
        .iter()
        .any(|known| section.starts_with(known))
}

fn is_key_of_tests(line: &str) -> bool {
    static KEY: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"^\s*\[+(?:tool[.:])?(?:pytest|testenv|tox|coverage|nox)|^\s*(?:addopts|testpaths|python_files|python_classes|python_functions|norecursedirs|collect_ignore\w*|xfail_strict|fail_under|required_plugins|confcutdir)\s*=",
        )
    });
    KEY.is_match(line)
}

fn is_part_of_tests(path: &str, line: &str) -> bool {
    static PACKAGE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r#""(?:(?:pre|post)?test(?:[:.-][^"]*)?|jest|vitest|mocha|ava|nyc|c8)"\s*:"#));
    static MAKE: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)^\s*(?:export\s+)?\w*test\w*\s*[:?+]?=|^\.IGNORE\b"));
    static MAVEN: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)skipTests|maven\.test\.|testFailureIgnore|surefire|failsafe|<excludes?>|<groups>|skipITs")
    });
    static GRADLE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(r"(?i)\btest\b|ignoreFailures|onlyIf|excludeTestsMatching|useJUnit|\benabled\s*=\s*false")
    });
    static CARGO: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:test|harness|autotests|doctest)\s*=\s*false"));
    let name = file_name(path);
    let expression = match name {
        "package.json" => &PACKAGE,
        "pom.xml" => &MAVEN,
        "Cargo.toml" => &CARGO,
        _ if name.to_ascii_lowercase().ends_with("makefile") => &MAKE,
        _ => &GRADLE,
    };
    expression.is_match(line)
}
