//! The lines of the project's tests at which checks failed: whoever was not shown a test does not
//! know from `1 != 5` what it expects.
//!
//! The places are those that runners write: `tests/x.py:12:`, `File "x.py", line 12`,
//! `(file:///x.test.js:12:3)`, `x_test.go:12:`, `(XTest.java:12)`. A file that is not the project's
//! is no place.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::Regex;

use super::check::Checked;
use super::failures::{within, without_colours};
use super::language::{is_among_tests, is_code, marks_test, test_name};
use super::pattern;

/// Most places that are returned, and most names of files that are looked for among the project's.
const MOST_PLACES: usize = 12;
const MOST_NAMES: usize = 60;
/// Lines before and behind the one that failed, and most lines of all.
const BEFORE: usize = 8;
const BEHIND: usize = 3;
const MOST_LINES: usize = 12;
/// Longest part of a line that is shown, in bytes.
const LONGEST_LINE: usize = 200;

/// A place in a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestPlace {
    pub path: String,
    pub line: u32,
}

/// The lines around a place in a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestLines {
    pub place: TestPlace,
    /// Numbers of the first and the last line.
    pub first: u32,
    pub last: u32,
    pub text: String,
}

/// Returns the places in tests that the failed `checks` name, those of their first failures first.
/// `root` is the folder of the project where they ran, `files` are its files.
pub fn places(checks: &[Checked], root: &str, files: &[String]) -> Vec<TestPlace> {
    let mut places: Vec<TestPlace> = Vec::new();
    let mut known: HashMap<String, Option<&str>> = HashMap::new();
    for check in checks {
        let of_failures = check.failures.iter().filter_map(|failure| {
            let place = failure.place.as_ref()?;
            Some((place.path.clone(), place.line?, false))
        });
        for (path, line, is_in_test) in of_failures.chain(written(&check.tail, root)) {
            if places.len() == MOST_PLACES {
                return places;
            }
            // An output of nothing but names would be compared with all files hundreds of times.
            if known.len() == MOST_NAMES && !known.contains_key(&path) {
                continue;
            }
            let meant = known.entry(path).or_insert_with_key(|path| file(path, files));
            let Some(path) = meant.filter(|path| is_in_test || is_among_tests(path)) else {
                continue;
            };
            let place = TestPlace {
                path: path.to_owned(),
                line,
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
    }
    places
}

/// Returns the lines of the file `text` around a place in it, from the beginning of the test on
/// where that is near; `None` if there is no such line.
pub fn around(place: &TestPlace, text: &str) -> Option<TestLines> {
    let lines: Vec<&str> = text.lines().collect();
    let failed = usize::try_from(place.line).ok()?.checked_sub(1)?;
    lines.get(failed)?;
    let begins = |line: &&str| marks_test(line) || test_name(&place.path, line, false).is_some();
    let earliest = failed.saturating_sub(BEFORE);
    let mut first = lines[earliest..=failed]
        .iter()
        .rposition(begins)
        .map_or(earliest, |begin| earliest + begin);
    // Some runners name the line that the test begins with.
    let behind = if first == failed { MOST_LINES - 1 } else { BEHIND };
    let mut end = (failed + behind + 1).min(lines.len());
    if let Some(next) = lines[failed + 1..end].iter().position(begins) {
        end = failed + 1 + next;
    }
    while first < failed && lines[first].trim().is_empty() {
        first += 1;
    }
    while end > failed + 1 && lines[end - 1].trim().is_empty() {
        end -= 1;
    }
    let shown: Vec<&str> = lines[first..end]
        .iter()
        .map(|line| &line[..line.floor_char_boundary(LONGEST_LINE)])
        .collect();
    Some(TestLines {
        place: place.clone(),
        first: u32::try_from(first + 1).ok()?,
        last: u32::try_from(end).ok()?,
        text: shown.join("\n"),
    })
}

/// Returns the places that an output names, each with whether it is said to be in a test.
fn written(output: &str, root: &str) -> Vec<(String, u32, bool)> {
    static PLACE: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r#"(?:file://)?(?P<path>[^\s:()'"<>\[\],]+\.\w+)(?:"?, line |:\[?)(?P<line>\d+)(?:, in (?P<function>\w+))?"#,
        )
    });
    let output = without_colours(output);
    let places = PLACE.captures_iter(&output).filter_map(|parts| {
        let path = within(parts.name("path")?.as_str(), root)?.to_owned();
        let line = parts.name("line")?.as_str().parse().ok()?;
        let is_in_test = parts
            .name("function")
            .is_some_and(|function| function.as_str().starts_with("test"));
        Some((path, line, is_in_test))
    });
    places.collect()
}

/// Returns the file that a runner means by `path`. Some write its name alone, or the name of its
/// class, or are started in a folder of the project: then it is the only file that fits.
fn file<'files>(path: &str, files: &'files [String]) -> Option<&'files str> {
    if let Some(file) = files.iter().find(|file| *file == path) {
        return Some(file);
    }
    let end = format!("/{path}");
    let is_class_of = |file: &str| {
        let name = file.rsplit('/').next().unwrap_or(file);
        is_code(file) && name.split_once('.').is_some_and(|(stem, _)| stem == path)
    };
    let mut fitting = files.iter().filter(|file| file.ends_with(&end) || is_class_of(file));
    match (fitting.next(), fitting.next()) {
        (Some(file), None) => Some(file),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::check::Ended;
    use proptest::prelude::*;

    const ROOT: &str = "/workspace/project";

    fn files() -> Vec<String> {
        [
            "src/total.py",
            "test_a.py",
            "checks/words.py",
            "tests/test_add.py",
            "packages/one/test/add.test.mjs",
            "store/stock_test.go",
            "src/test/java/com/x/FooTest.java",
            "src/main/java/com/x/Foo.java",
            "one/same_test.go",
            "two/same_test.go",
        ]
        .map(str::to_owned)
        .into()
    }

    fn named(output: &str) -> String {
        let ended = Ended::new(Some(1), output.to_owned(), ROOT);
        let places = places(&[Checked::new("make test", 0, &ended)], ROOT, &files());
        let places = places.iter().map(|place| format!("{}:{}", place.path, place.line));
        places.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn only_so_many_names_are_looked_for() {
        let made_up = |count: usize| (0..count).fold(String::new(), |text, number| text + &format!("n{number}.x:1\n"));
        let place = "tests/test_add.py:5\n";
        assert_eq!(named(&(made_up(MOST_NAMES - 1) + place)), "tests/test_add.py:5");
        assert_eq!(named(&(made_up(MOST_NAMES) + place)), "");
    }

    #[test]
    fn the_places_are_those_that_the_runners_write() {
        for (output, expected) in [
            (
                "____ test_adds ____\n\n>       assert add(1, 2) == 3\nE       assert -1 == 3\n\ntests/test_add.py:5: AssertionError\n",
                "tests/test_add.py:5",
            ),
            // The failure is in the source; the test is above it.
            (
                "ERROR: test_y (test_a.A.test_y)\nTraceback (most recent call last):\n  File \"/workspace/project/test_a.py\", line 6, in test_y\n    \
                 total(None)\n  File \"/workspace/project/src/total.py\", line 2, in total\nTypeError: no\n",
                "test_a.py:6",
            ),
            (
                "Traceback (most recent call last):\n  File \"checks/words.py\", line 4, in test_words\nAssertionError: 1 != 2\n",
                "checks/words.py:4",
            ),
            (
                "✖ adds (2.1ms)\n  AssertionError [ERR_ASSERTION]: no\n      at TestContext.<anonymous> (file:///workspace/project/packages/one/test/add.test.mjs:5:10)\n      \
                 at Test.run (node:internal/test:1:2)\n",
                "packages/one/test/add.test.mjs:5",
            ),
            // A runner that was started in a folder of the project.
            (
                "    at Object.toBe (test/add.test.mjs:4:21)\n",
                "packages/one/test/add.test.mjs:4",
            ),
            (
                "--- FAIL: TestX (0.00s)\n    stock_test.go:4: got 1\n    same_test.go:7: got 2\n",
                "store/stock_test.go:4",
            ),
            (
                "\t/workspace/project/store/stock_test.go:6 +0x1a\n",
                "store/stock_test.go:6",
            ),
            (
                "org.opentest4j.AssertionFailedError: no\n\tat org.junit.Assert.fail(Assert.java:89)\n\tat com.x.Foo.add(Foo.java:3)\n\t\
                 at com.x.FooTest.adds(FooTest.java:12)\n",
                "src/test/java/com/x/FooTest.java:12",
            ),
            (
                "[ERROR]   FooTest.adds:14 expected: <3> but was: <-1>\n",
                "src/test/java/com/x/FooTest.java:14",
            ),
            ("thread 'adds' panicked at tests/gone.rs:5:17:\nno\n", ""),
            (
                "\u{1b}[31mtests/test_add.py\u{1b}[0m:5: AssertionError\n",
                "tests/test_add.py:5",
            ),
            (
                "tests/test_add.py:99999999999: no\n/usr/lib/tests/test_add.py:3: no\nno greeting\n",
                "",
            ),
        ] {
            assert_eq!(named(output), expected, "{output}");
        }
    }

    fn shown(path: &str, line: u32, text: &str) -> Option<(u32, u32, String)> {
        let place = TestPlace {
            path: path.to_owned(),
            line,
        };
        around(&place, text).map(|lines| (lines.first, lines.last, lines.text))
    }

    const PYTHON: &str = "import unittest\n\n\nclass Sums(unittest.TestCase):\n    def test_one(self):\n        self.assertEqual(1, 1)\n\n    \
                          def test_add(self):\n        total = add(2, 3)\n        self.assertEqual(total, 5)\n\n    def test_more(self):\n        pass\n";

    #[test]
    fn the_lines_are_those_of_the_test_that_failed() {
        let add = "    def test_add(self):\n        total = add(2, 3)\n        self.assertEqual(total, 5)";
        assert_eq!(shown("test_a.py", 10, PYTHON), Some((8, 10, add.to_owned())));
        // The line that the test begins with is as good.
        assert_eq!(shown("test_a.py", 8, PYTHON), Some((8, 10, add.to_owned())));
        let java = "class FooTest {\n    @Test\n    void adds() {\n        assertEquals(3, add(1, 2));\n    }\n\n    @Test\n    void more() {}\n}\n";
        let adds = "    @Test\n    void adds() {\n        assertEquals(3, add(1, 2));\n    }";
        assert_eq!(shown("FooTest.java", 4, java), Some((2, 5, adds.to_owned())));
        for line in [0, 14, u32::MAX] {
            assert_eq!(shown("test_a.py", line, PYTHON), None);
        }
    }

    #[test]
    fn a_long_test_is_shown_in_part() {
        let lines: Vec<String> = (1..=40)
            .map(|number| format!("line {number} {}\n", "x".repeat(400)))
            .collect();
        let long = lines.concat();
        let (first, last, text) = shown("tests/a.txt", 20, &long).unwrap();
        assert_eq!((first, last, text.lines().count()), (12, 23, MOST_LINES));
        assert!(text.len() <= MOST_LINES * (LONGEST_LINE + 1));
    }

    proptest! {
        #[test]
        fn no_output_and_no_file_is_any_trouble(output in any::<String>(), text in "(def test_a\\(\\):|    x\n|\n|é){0,40}", line in 0_u32..60) {
            let _ = named(&output);
            if let Some((first, last, shown)) = shown("test_a.py", line, &text) {
                prop_assert!(first <= line && line <= last && usize::try_from(last - first).unwrap() < MOST_LINES);
                prop_assert!(shown.lines().count() <= MOST_LINES);
            }
        }
    }
}
