//! Detects how a project is tested, from the names of its files and the contents of a few.
//!
//! Build files count in the root only: the tests of one folder of many say little about the whole.
//! Python's tests count in every folder.

use std::collections::BTreeMap;

use serde_json::Value;

/// Most test files that are read to see which runner they are written for.
const MOST_TEST_FILES: usize = 5;

/// Files in the root that say how the project is tested.
const TELLING: [&str; 8] = [
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "tox.ini",
    "requirements.txt",
    "requirements-dev.txt",
    "Makefile",
    "makefile",
];

/// Files of one commit.
#[derive(Debug, Default)]
pub struct Files {
    pub paths: Vec<String>,
    /// Contents of the files that [`telling`] names.
    pub contents: BTreeMap<String, String>,
}

/// Returns the paths whose contents are needed.
pub fn telling(paths: &[String]) -> Vec<&str> {
    let named = TELLING.into_iter().filter(|name| paths.iter().any(|path| path == name));
    let tests = paths.iter().map(String::as_str).filter(|path| is_python_test(path));
    named.chain(tests.take(MOST_TEST_FILES)).collect()
}

/// Returns the commands that test the project, the best first. If one cannot be started, the next
/// one may be.
pub fn detect(files: &Files) -> Vec<&'static str> {
    let mut commands = Vec::new();
    if files.has("Cargo.toml") {
        commands.push("cargo test");
    }
    if files.text("package.json").is_some_and(has_test_script) {
        commands.push("npm test");
    }
    if files.uses_pytest() {
        commands.push("python -m pytest -q");
    }
    if files.has("go.mod") {
        commands.push("go test ./...");
    }
    if files.has("pom.xml") {
        commands.push("mvn -q test");
    }
    if files.has("gradlew") {
        commands.push("sh ./gradlew test");
    }
    let makefile = files.text("Makefile").or_else(|| files.text("makefile"));
    if makefile.is_some_and(has_test_target) {
        commands.push("make test");
    }
    commands
}

impl Files {
    fn has(&self, path: &str) -> bool {
        self.paths.iter().any(|known| known == path)
    }

    fn text(&self, path: &str) -> Option<&str> {
        self.contents.get(path).map(String::as_str)
    }

    fn uses_pytest(&self) -> bool {
        let is_named = |path: &String| path.rsplit('/').next() == Some("conftest.py");
        let mentions = || {
            self.contents
                .iter()
                .any(|(path, text)| path != "package.json" && text.contains("pytest"))
        };
        let has_tests = || self.paths.iter().any(|path| is_python_test(path));
        self.has("pytest.ini") || has_tests() && (self.paths.iter().any(is_named) || mentions())
    }
}

/// Tells whether the package has a test script other than the one that `npm init` writes.
fn has_test_script(package: &str) -> bool {
    let package: Value = serde_json::from_str(package).unwrap_or_default();
    package["scripts"]["test"]
        .as_str()
        .is_some_and(|script| !script.trim().is_empty() && !script.contains("no test specified"))
}

fn has_test_target(makefile: &str) -> bool {
    makefile.lines().any(|line| {
        let Some((targets, rest)) = line.split_once(':') else {
            return false;
        };
        // `test := x` is a variable, and an indented line belongs to a recipe.
        !line.starts_with(char::is_whitespace)
            && !rest.starts_with('=')
            && targets.split_whitespace().any(|target| target == "test")
    })
}

fn is_python_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.strip_suffix(".py")
        .is_some_and(|stem| stem.starts_with("test_") || stem.ends_with("_test"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn detected(files: &[(&str, &str)]) -> Vec<&'static str> {
        let owned = |(path, text): &(&str, &str)| ((*path).to_owned(), (*text).to_owned());
        let all: BTreeMap<String, String> = files.iter().map(owned).collect();
        let paths: Vec<String> = all.keys().cloned().collect();
        let contents = telling(&paths)
            .into_iter()
            .map(|path| (path.to_owned(), all[path].clone()))
            .collect();
        detect(&Files { paths, contents })
    }

    #[test]
    fn a_project_is_tested_as_its_files_say() {
        for (files, expected) in [
            (&[("README.md", "pytest")][..], &[][..]),
            (&[("Cargo.toml", "[package]")], &["cargo test"]),
            (&[("crates/a/Cargo.toml", "[package]")], &[]),
            (
                &[("package.json", r#"{"scripts": {"test": "vitest run"}}"#)],
                &["npm test"],
            ),
            (
                &[(
                    "package.json",
                    r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#,
                )],
                &[],
            ),
            (&[("package.json", r#"{"scripts": {"build": "tsc"}}"#)], &[]),
            (&[("package.json", "{")], &[]),
            (&[("pytest.ini", "")], &["python -m pytest -q"]),
            (&[("pyproject.toml", "[tool.pytest.ini_options]")], &[]),
            (
                &[("pyproject.toml", "[tool.pytest.ini_options]"), ("tests/test_a.py", "")],
                &["python -m pytest -q"],
            ),
            (&[("a_test.py", "import pytest")], &["python -m pytest -q"]),
            (
                &[("tests/conftest.py", ""), ("tests/test_a.py", "")],
                &["python -m pytest -q"],
            ),
            (&[("tests/test_a.py", "import unittest")], &[]),
            (&[("go.mod", "module a")], &["go test ./..."]),
            (&[("pom.xml", "<project/>")], &["mvn -q test"]),
            (&[("gradlew", "")], &["sh ./gradlew test"]),
            (
                &[("Makefile", "all: test\n\nlint test: build\n\t./check\n")],
                &["make test"],
            ),
            (&[("Makefile", "test := a\nall:\n\ttest: b\nlatest:\n")], &[]),
            (
                &[("Makefile", "test:\n\tgo test\n"), ("go.mod", "module a")],
                &["go test ./...", "make test"],
            ),
        ] {
            assert_eq!(detected(files), expected, "{files:?}");
        }
    }

    #[test]
    fn only_a_few_test_files_are_read() {
        let paths: Vec<String> = (0..100).map(|number| format!("tests/test_{number}.py")).collect();
        assert_eq!(telling(&paths).len(), MOST_TEST_FILES);
    }

    proptest! {
        #[test]
        fn any_content_is_taken(package in any::<String>(), makefile in any::<String>()) {
            let _ = detected(&[("package.json", &package), ("Makefile", &makefile)]);
        }
    }
}
