//! Names of a standard library that a build or a test run calls unknown, with the line that imports
//! them.
//!
//! A compiler says that a name is unknown, and not that its import is missing: a small model reads
//! that as a fault of the line that is named, and writes the same file again. The line is proposed
//! and not written, since a name of the project can be meant.

mod libraries; // where the names of standard libraries come from

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;

use super::check::Checked;
use super::failures::{within, without_colours};
use super::language::is_among_tests;
use super::pattern;

/// Most names that are explained.
const MOST: usize = 5;
/// Most lines before or behind a message in which the file is named, or the rest of the message is.
const NEAR: usize = 6;

/// A name that may lack its import.
#[derive(Debug, PartialEq, Eq)]
struct Missing<'output> {
    name: &'output str,
    /// The file that uses it, from the project's folder on.
    path: &'output str,
    /// The line that imports it.
    line: String,
}

/// Returns a paragraph for the model on the imports that may be missing according to the output of
/// `checks`; empty if there are none. `root` is the folder of the project, which paths are told
/// without. Of files outside of the project and of tests nothing is said: neither are for the model
/// to change.
pub fn told(checks: &[Checked], root: &str) -> String {
    let outputs: Vec<String> = checks.iter().map(|check| without_colours(&check.tail)).collect();
    let mut missing: Vec<Missing<'_>> = Vec::new();
    for one in outputs.iter().flat_map(|output| missing_imports(output, root)) {
        let is_known = missing
            .iter()
            .any(|known| (known.name, known.path) == (one.name, one.path));
        if missing.len() < MOST && !is_known {
            missing.push(one);
        }
    }
    if missing.is_empty() {
        return String::new();
    }
    let mut text = "\nAn import may be missing:\n".to_owned();
    for Missing { name, path, line } in missing {
        let _ = writeln!(
            text,
            "- if `{name}` in {path} is that of the standard library, add the line `{line}` to {path}, and keep its other imports."
        );
    }
    text
}

fn missing_imports<'output>(output: &'output str, root: &str) -> Vec<Missing<'output>> {
    let lines: Vec<&str> = output.lines().map(str::trim_end).collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let (before, behind) = (&lines[number.saturating_sub(NEAR)..number], &lines[number + 1..]);
        let behind = &behind[..behind.len().min(NEAR)];
        let one = in_java(line, behind)
            .or_else(|| in_go(line))
            .or_else(|| in_python(before, line, behind))
            .or_else(|| in_node(line, behind));
        if let Some(one) = one
            && let Some(path) = within(one.path, root)
            && !is_among_tests(path)
        {
            found.push(Missing { path, ..one });
        }
    }
    found
}

/// Reads a message of javac, or of Maven about one: the name stands in one of the lines behind.
fn in_java<'output>(line: &'output str, behind: &[&'output str]) -> Option<Missing<'output>> {
    static UNKNOWN: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?P<path>[^\s:]+\.java):(?:\d+: error:|\[\d+,\d+\]) cannot find symbol$"));
    static SYMBOL: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bsymbol: +(?P<kind>\w+) (?P<name>\w+)"));
    let path = UNKNOWN.captures(line)?.name("path")?.as_str();
    let mut of_this_message = behind.iter().take_while(|line| !UNKNOWN.is_match(line));
    let symbol = of_this_message.find_map(|line| SYMBOL.captures(line))?;
    let name = symbol.name("name")?.as_str();
    let is_class = ["class", "variable"].contains(&&symbol["kind"]);
    let line = libraries::java(name).filter(|_| is_class)?;
    Some(Missing { name, path, line })
}

fn in_go(line: &str) -> Option<Missing<'_>> {
    static UNKNOWN: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?P<path>[^\s:]+\.go):\d+(?::\d+)?: undefined: (?P<name>\w+)$"));
    let found = UNKNOWN.captures(line)?;
    let name = found.name("name")?.as_str();
    Some(Missing {
        name,
        path: found.name("path")?.as_str(),
        line: libraries::go(name)?,
    })
}

/// Reads a `NameError`: the file stands in the last line before it that names one, or, as pytest
/// writes it, in one behind.
fn in_python<'output>(
    before: &[&'output str],
    line: &'output str,
    behind: &[&'output str],
) -> Option<Missing<'output>> {
    static UNKNOWN: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^(?:E +)?NameError: name '(?P<name>\w+)' is not defined"));
    static IN_TRACEBACK: LazyLock<Regex> = LazyLock::new(|| pattern(r#"^ *File "(?P<path>[^"]+)", line \d+"#));
    static BELOW: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?P<path>[^\s:]+\.py):\d+: NameError$"));
    let name = UNKNOWN.captures(line)?.name("name")?.as_str();
    let below = || behind.iter().find_map(|line| BELOW.captures(line));
    let place = if line.starts_with('E') {
        below()
    } else {
        before.iter().rev().find_map(|line| IN_TRACEBACK.captures(line))
    };
    Some(Missing {
        name,
        path: place?.name("path")?.as_str(),
        line: libraries::python(name)?,
    })
}

/// Reads a `ReferenceError` of Node, or what its test runner makes of one: the file stands in the
/// first line of the stack behind, with a URL if it is an ECMAScript module.
fn in_node<'output>(line: &'output str, behind: &[&'output str]) -> Option<Missing<'output>> {
    static UNKNOWN: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?:ReferenceError: |error: ')(?P<name>\w+) is not defined"));
    static IN_STACK: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"(?P<url>file://)?(?P<path>/[^\s:()]+\.[cm]?js):\d+:\d+\)?$"));
    let name = UNKNOWN.captures(line)?.name("name")?.as_str();
    let place = behind.iter().find_map(|line| IN_STACK.captures(line))?;
    Some(Missing {
        name,
        path: place.name("path")?.as_str(),
        line: libraries::node(name, place.name("url").is_some())?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::check::Ended;

    const ROOT: &str = "/workspace/project";

    fn told_of(output: &str) -> String {
        let ended = Ended::new(Some(1), output.to_owned(), ROOT);
        told(&[Checked::new("make test", 0, &ended)], ROOT)
    }

    #[test]
    fn the_line_that_is_missing_is_told_with_its_file() {
        for (output, name, path, line) in [
            (
                "Point.java:20: error: cannot find symbol\n        return Objects.hash(x, y);\n               ^\n  symbol:   variable Objects\n  location: class Point\n1 error\n",
                "Objects",
                "Point.java",
                "import java.util.Objects;",
            ),
            (
                "# example.com/calc\n./calc.go:30:15: undefined: fmt\nFAIL\texample.com/calc [build failed]\n",
                "fmt",
                "calc.go",
                "import \"fmt\"",
            ),
            (
                "Traceback (most recent call last):\n  File \"/workspace/project/tests/test_a.py\", line 3, in test_a\n    a()\n  File \"/workspace/project/a.py\", line 2, in a\n    return re.sub(1)\n           ^^\nNameError: name 're' is not defined\n",
                "re",
                "a.py",
                "import re",
            ),
            (
                "    def total():\n>       return defaultdict(int)\nE       NameError: name 'defaultdict' is not defined. Did you mean: 'default'?\n\nsrc/a.py:4: NameError\n=== short test summary info ===\nFAILED tests/test_a.py::test_a - NameError: name 'defaultdict' is not defined\n",
                "defaultdict",
                "src/a.py",
                "from collections import defaultdict",
            ),
            (
                "not ok 1 - reads\n  ---\n  location: '/workspace/project/test/read.test.js:5:1'\n  failureType: 'testCodeFailure'\n  error: 'fs is not defined'\n  code: 'ERR_TEST_FAILURE'\n  name: 'ReferenceError'\n  stack: |-\n    read (/workspace/project/lib/read.js:2:3)\n    TestContext.<anonymous> (/workspace/project/test/read.test.js:5:1)\n",
                "fs",
                "lib/read.js",
                "const fs = require(\"node:fs\");",
            ),
            (
                "file:///workspace/project/bus.js:1\nnew EventEmitter();\n^\n\nReferenceError: EventEmitter is not defined\n    at file:///workspace/project/bus.js:1:1\n",
                "EventEmitter",
                "bus.js",
                "import { EventEmitter } from \"node:events\";",
            ),
        ] {
            assert_eq!(
                told_of(output),
                format!(
                    "\nAn import may be missing:\n- if `{name}` in {path} is that of the standard library, add the line `{line}` to {path}, and keep \
                     its other imports.\n"
                ),
                "{output}"
            );
        }
    }

    #[test]
    fn each_message_of_maven_is_of_its_own_file() {
        let error = |path: &str, kind: &str, name: &str| {
            format!(
                "[ERROR] /workspace/project/src/{path}:[20,16] cannot find symbol\n[ERROR]   symbol:   {kind} {name}\n[ERROR]   location: class A\n"
            )
        };
        let told = told_of(&[error("A.java", "class", "List"), error("B.java", "variable", "Objects")].concat());
        assert!(
            told.contains("`List` in src/A.java") && told.contains("`Objects` in src/B.java"),
            "{told}"
        );
        let cut = "[ERROR] /workspace/project/src/A.java:[1,2] cannot find symbol\n".to_owned();
        let told = told_of(&[cut, error("B.java", "class", "List"), error("C.java", "method", "Map")].concat());
        assert!(
            told.contains("`List` in src/B.java") && !told.contains("A.java") && !told.contains("`Map`"),
            "{told}"
        );
    }

    #[test]
    fn a_name_is_told_once_for_each_file_and_five_are_enough() {
        let output = "a.go:1:2: undefined: fmt\na.go:9:2: undefined: fmt\nb.go:1:2: undefined: fmt\n";
        assert_eq!(told_of(output).matches("\n- ").count(), 2);
        let many: Vec<String> = (0..9)
            .map(|number| format!("a{number}.go:1:2: undefined: fmt\n"))
            .collect();
        assert_eq!(told_of(&many.concat()).matches("\n- ").count(), MOST);
    }

    #[test]
    fn names_of_the_project_and_files_of_others_are_not_explained() {
        for output in [
            "a.go:1:2: undefined: Total\n",
            "A.java:2: error: cannot find symbol\n  x.total();\n   ^\n  symbol:   method total()\n  location: variable x of type A\n",
            "  File \"/workspace/project/a.py\", line 2, in a\nNameError: name 'totals' is not defined\n",
            "ReferenceError: total is not defined\n    at /workspace/project/a.js:1:1\n",
            "the path is not defined in this file system\n    at /workspace/project/a.js:1:1\n",
            "  File \"/usr/lib/python3.11/site-packages/a.py\", line 2, in a\nNameError: name 're' is not defined\n",
            "  File \"<string>\", line 2, in a\nNameError: name 're' is not defined\n",
            "  File \"/workspace/project-old/a.py\", line 2, in a\nNameError: name 're' is not defined\n",
            "NameError: name 're' is not defined\n",
            "MatcherTest.java:3: error: cannot find symbol\n  new Matcher();\n      ^\n  symbol:   class Matcher\n  location: class MatcherTest\n",
            "",
        ] {
            assert_eq!(told_of(output), "", "{output}");
        }
    }
}
