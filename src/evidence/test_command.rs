//! Detects how a project is tested, from the names of its files and the contents of a few.
//!
//! Build files count in the root only: the tests of one folder of many say little about the whole.
//! Python's tests count in every folder.

use std::collections::BTreeMap;

use serde_json::Value;

/// Most test files that are read to see which runner they are written for.
const MOST_TEST_FILES: usize = 5;

/// Scripts in the root that run the tests where nothing else says how.
const SCRIPTS: [&str; 4] = ["run-tests.sh", "run_tests.sh", "runtests.sh", "test.sh"];

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
    let node = paths.iter().map(String::as_str).filter(|path| is_node_test(path));
    named
        .chain(tests.take(MOST_TEST_FILES))
        .chain(node.take(MOST_TEST_FILES))
        .collect()
}

/// Returns the commands that test the project, the best first. If one cannot be started, the next
/// one may be.
pub fn detect(files: &Files) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let mut found = |command: &str| commands.push(command.to_owned());
    if files.has("Cargo.toml") {
        found("cargo test");
    }
    if files.text("package.json").is_some_and(has_test_script) {
        found("npm test");
    } else if files.uses_nodes_own_tests() {
        found("node --test");
    }
    if files.uses_pytest() {
        found("python -m pytest -q");
    } else if let Some(folder) = files.folder_of_unittests() {
        found(&unittest(folder, &files.paths));
    }
    if files.has("go.mod") {
        found("go test ./...");
    }
    if files.has("pom.xml") {
        found("mvn -q test");
    }
    if files.has("gradlew") {
        found("sh ./gradlew test");
    }
    let makefile = files.text("Makefile").or_else(|| files.text("makefile"));
    if makefile.is_some_and(has_test_target) {
        found("make test");
    }
    let script = SCRIPTS.iter().find(|script| files.has(script));
    if let (true, Some(script)) = (commands.is_empty(), script) {
        commands.push(format!("sh {script}"));
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

    /// Returns the folder of the tests for Python's own library, if they all lie in one below the
    /// root whose name needs no quotes, or in the root.
    fn folder_of_unittests(&self) -> Option<&str> {
        let is_test = |path: &&String| is_python_test(path);
        let is_plain = |folder: &str| {
            folder
                .chars()
                .all(|letter| letter.is_ascii_alphanumeric() || "_-".contains(letter))
        };
        // The pattern of this library's own search.
        let is_found = |path: &str| path.rsplit('/').next().is_some_and(|name| name.starts_with("test"));
        let mut folders = self
            .paths
            .iter()
            .filter(is_test)
            .map(|path| path.split_once('/').map_or("", |(top, _)| top));
        let first = folders.next()?;
        let uses_it = || {
            self.contents
                .iter()
                .any(|(path, text)| is_python_test(path) && is_found(path) && text.contains("unittest"))
        };
        (is_plain(first) && folders.all(|folder| folder == first) && uses_it()).then_some(first)
    }

    fn uses_nodes_own_tests(&self) -> bool {
        self.contents
            .iter()
            .any(|(path, text)| is_node_test(path) && text.contains("node:test"))
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

/// Returns the command for tests with Python's own library in `folder`, which is empty for the
/// root.
fn unittest(folder: &str, paths: &[String]) -> String {
    if folder.is_empty() {
        return "python3 -m unittest discover -q".to_owned();
    }
    // Tests in a package import what lies beside it, by the names that it has from the root.
    let is_package = paths
        .iter()
        .any(|path| path.strip_suffix("/__init__.py") == Some(folder));
    if is_package {
        format!("python3 -m unittest discover -q -s {folder} -t .")
    } else {
        format!("PYTHONPATH=. python3 -m unittest discover -q -s {folder}")
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

/// Tells whether `node --test` takes a file for one of tests by its name.
fn is_node_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    ["js", "mjs", "cjs"].iter().any(|end| {
        name.strip_suffix(end)
            .is_some_and(|stem| stem.ends_with(".test.") || stem.ends_with("-test.") || stem == "test.")
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

    fn detected(files: &[(&str, &str)]) -> Vec<String> {
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
            (
                &[("tests/test_a.py", "import unittest"), ("tests/__init__.py", "")],
                &["python3 -m unittest discover -q -s tests -t ."],
            ),
            (
                &[("tests/test_a.py", "import unittest")],
                &["PYTHONPATH=. python3 -m unittest discover -q -s tests"],
            ),
            (
                &[("test_a.py", "import unittest")],
                &["python3 -m unittest discover -q"],
            ),
            (&[("a_test.py", "import unittest")], &[]),
            (&[("a b/test_a.py", "import unittest")], &[]),
            (&[("a/test_a.py", "import unittest"), ("b/test_b.py", "")], &[]),
            (&[("test/a.test.js", "require('node:test')")], &["node --test"]),
            (&[("test/a.test.js", "import 'vitest'")], &[]),
            (
                &[
                    ("package.json", r#"{"scripts": {"test": "jest"}}"#),
                    ("a.test.mjs", "import 'node:test'"),
                ],
                &["npm test"],
            ),
            (&[("run-tests.sh", ""), ("A.java", "")], &["sh run-tests.sh"]),
            (&[("run-tests.sh", ""), ("go.mod", "")], &["go test ./..."]),
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
