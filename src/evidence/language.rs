//! Recognises tests, assertions, skips and placeholders line by line. A line is not a program: the
//! content of a string looks the same, so a finding is something to look at and never a proof.

use std::sync::LazyLock;

use regex::Regex;

use super::pattern;

/// Extensions of files with code; only their lines are looked at.
const CODE: [&str; 27] = [
    "rs", "py", "js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "vue", "svelte", "go", "java", "kt", "scala",
    "groovy", "c", "h", "cc", "cpp", "hpp", "cs", "rb", "php", "swift", "sh",
];

/// Folders whose files were written by others or by a program.
const FOREIGN: [&str; 6] = ["node_modules", "vendor", "third_party", "dist", "build", "target"];

/// Tells whether the file at `path` is code that was written here.
pub(super) fn is_code(path: &str) -> bool {
    let end = path.rsplit_once('.').map(|(_, end)| end);
    !is_foreign(path) && end.is_some_and(|end| CODE.contains(&end))
}

/// Tells whether the file at `path` was written by others or by a program.
pub(super) fn is_foreign(path: &str) -> bool {
    let mut folders = path.split('/');
    let name = folders.next_back().unwrap_or(path);
    folders.any(|folder| FOREIGN.contains(&folder)) || name.contains(".min.")
}

/// Tells whether the file at `path` is among the tests, by its folder or name.
pub fn is_among_tests(path: &str) -> bool {
    let is_folder_of_tests = |folder: &str| ["test", "tests", "__tests__", "spec", "testdata"].contains(&folder);
    let mut parts = path.split('/');
    let name = parts.next_back().unwrap_or(path);
    parts.any(is_folder_of_tests) || name.starts_with("Tests.") || is_test_file(path)
}

/// Tells whether the file at `path` holds tests, by its name.
pub(super) fn is_test_file(path: &str) -> bool {
    static NAME: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?:^|/)(?:test_[^/]*\.py|[^/]*_test\.\w+|[^/]*_spec\.rb|[^/]*[.-](?:test|spec)\.\w+|[A-Z]\w*(?:Test|Tests|IT|Spec)\.\w+|Test[A-Z]\w*\.java|tests?\.rs|(?:tests|__tests__)/[^/]+\.(?:rs|[cm]?[jt]sx?))$",
        )
    });
    is_code(path) && NAME.is_match(path)
}

/// Returns the name of the test that begins on `line`. `is_marked` tells whether a line above
/// announced a test.
pub(super) fn test_name(path: &str, line: &str, is_marked: bool) -> Option<String> {
    static PYTHON: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:async )?def (test\w*)\("));
    static GO: LazyLock<Regex> = LazyLock::new(|| pattern(r"^func (Test\w*|Benchmark\w*|Fuzz\w*)\("));
    static SCRIPT: LazyLock<Regex> = LazyLock::new(|| {
        // A test keeps its name when it is skipped or unskipped.
        pattern(r#"^\s*x?(?:it|test|specify)(?:\.\w+)*\(\s*(?:'([^']*)'|"([^"]*)"|`([^`]*)`)"#)
    });
    static FUNCTION: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"\b(?:fn|void|fun|Task) +(`[^`]+`|\w+)\s*(?:<[^>]*>)?\("));
    let own = match path.rsplit_once('.').map(|(_, end)| end) {
        Some("py") => &PYTHON,
        Some("go") => &GO,
        Some("js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" | "vue" | "svelte") => &SCRIPT,
        Some(_) if is_marked => &FUNCTION,
        _ => return None,
    };
    let found = own.captures(line)?;
    found
        .iter()
        .skip(1)
        .flatten()
        .next()
        .map(|name| name.as_str().to_owned())
}

/// Tells whether `line` announces that the next function is a test.
pub(super) fn marks_test(line: &str) -> bool {
    let line = line.trim_start();
    let is_attribute =
        line.starts_with("#[") && (line.contains("test]") || line.contains("test(") || line.contains("rstest"));
    is_attribute
        || [
            "@Test",
            "@ParameterizedTest",
            "@RepeatedTest",
            "[Fact",
            "[Theory",
            "[Test",
        ]
        .iter()
        .any(|mark| line.starts_with(mark))
}

/// Tells whether `line` may stand between such an announcement and its function.
pub(super) fn continues_mark(line: &str) -> bool {
    let line = line.trim();
    line.is_empty()
        || ["#[", "@", "//", "*", "/*", "["]
            .iter()
            .any(|begin| line.starts_with(begin))
}

/// Tells whether `line` keeps tests from being run.
pub(super) fn skips(line: &str) -> bool {
    static SKIP: LazyLock<Regex> = LazyLock::new(|| {
        pattern(concat!(
            r"pytest\.mark\.(?:skip|xfail)|pytest\.(?:skip|xfail|importorskip)\(|unittest\.(?:skip|expectedFailure)|\.skipTest\(",
            r"|#\[ignore\b|^\s*#\[cfg_attr\(.*\bignore\b",
            r"|\b(?:it|test|describe|suite|context)\.(?:skip|only|todo|fixme)\b|\b(?:xit|xtest|xdescribe|fit|fdescribe)\(|\bskip: *true\b",
            r"|\b[tbf]\.Skip(?:f|Now)?\(",
            r"|^\s*@(?:Disabled|Ignore)\b|^\s*\[Ignore\b|\bSkip *= *\x22",
        ))
    });
    SKIP.is_match(line)
}

/// Tells whether `line` checks something in a test.
pub(super) fn asserts(line: &str) -> bool {
    static ASSERT: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"\b(?:debug_)?assert\w*\b|\bassert[A-Z]\w*\(|\bexpect\w*\(|\b(?:require|t|b)\.(?:Error|Fatal|Fail|Equal|No|Nil|True|False|Contains|Len|Panics)\w*\(|\.should\b|\.unwrap_err\(|\bpytest\.raises\b|\bverify\(",
        )
    });
    ASSERT.is_match(line)
}

/// Tells whether `line` says that something is still to be done. `before` is the line above it.
pub(super) fn is_placeholder(path: &str, line: &str, before: &str) -> bool {
    static PLACEHOLDER: LazyLock<Regex> = LazyLock::new(|| {
        pattern(concat!(
            // In a comment, or in the form that begins one.
            r"(?://|#|/\*|^\s*\*|--|;|<!--).*\b(?:TODO|FIXME|XXX)\b|\b(?:TODO|FIXME)(?:\(\w+\))?:",
            r"|\bNotImplementedError\b|\bNotImplementedException\b|\b(?:unimplemented|todo)!\s*[(\[{]",
            r"|(?i:(?:throw|raise|panic|fatal|abort|Exception|Error)\b.*\bnot (?:yet )?implemented)",
            r"|(?i:(?://|#|/\*).*\b(?:placeholder|your code here|implement (?:me|this)|rest of (?:the )?(?:code|file|implementation)))",
        ))
    });
    static STUB: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^\s*(?:pass\s*#.*|(?:async )?def .*:\s*\.\.\.\s*(?:#.*)?)$"));
    let is_python = path.rsplit_once('.').is_some_and(|(_, end)| end == "py");
    // A function whose whole body is an ellipsis. Methods of protocols and overloads look the same
    // on these two lines, and count as well.
    let is_empty_body = line.trim() == "..."
        && before.trim_end().ends_with(':')
        && before.trim_start().trim_start_matches("async ").starts_with("def ");
    PLACEHOLDER.is_match(line) || is_python && (STUB.is_match(line) || is_empty_body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_told_by_the_names_of_files() {
        for path in [
            "tests/test_a.py",
            "test_a.py",
            "a_test.go",
            "src/a.test.ts",
            "src/a.spec.jsx",
            "spec/a_spec.rb",
            "src/test/java/com/x/FooTest.java",
            "tests/world.rs",
            "src/plan/tests.rs",
            "__tests__/a.js",
        ] {
            assert!(is_test_file(path) && is_among_tests(path), "{path}");
        }
        for path in [
            "src/contest.py",
            "tests/data.json",
            "src/latest.rs",
            "node_modules/a/a.test.js",
            "attest.go",
        ] {
            assert!(!is_test_file(path), "{path}");
        }
    }

    #[test]
    fn tests_have_names() {
        for (path, line, name) in [
            ("a.py", "    def test_it(self):", Some("test_it")),
            ("a.py", "def tested():", Some("tested")),
            ("a.py", "def helper():", None),
            ("a.go", "func TestX(t *testing.T) {", Some("TestX")),
            ("a.ts", "  it('adds', () => {", Some("adds")),
            ("a.ts", "  it.skip(\"adds\", () => {", Some("adds")),
            ("a.ts", "  xit(`adds`, () => {", Some("adds")),
            ("a.ts", "  submit('adds')", None),
            ("a.rs", "    async fn adds() {", Some("adds")),
            ("A.java", "  void adds() {", Some("adds")),
        ] {
            assert_eq!(test_name(path, line, true).as_deref(), name, "{line}");
        }
        assert_eq!(test_name("a.rs", "fn adds() {", false), None);
        for line in [
            "#[test]",
            "    #[tokio::test(flavor = \"multi_thread\")]",
            "@Test",
            "@ParameterizedTest(name = \"a\")",
        ] {
            assert!(marks_test(line), "{line}");
        }
        assert!(!marks_test("#[cfg(test)]x") || !marks_test("#[derive(Debug)]"));
    }

    #[test]
    fn skips_are_seen() {
        for line in [
            "@pytest.mark.skip(reason=\"later\")",
            "@pytest.mark.xfail",
            "    pytest.skip('no')",
            "@unittest.skipIf(True, 'no')",
            "    self.skipTest('no')",
            "#[ignore]",
            "    #[ignore = \"slow\"]",
            "it.skip('adds', () => {",
            "describe.only('group', () => {",
            "xit('adds', () => {",
            "test('adds', { skip: true }, () => {",
            "\tt.Skip(\"no\")",
            "  @Disabled(\"later\")",
        ] {
            assert!(skips(line), "{line}");
        }
        for line in [
            "exit(1)",
            "iter.skip(1)",
            "fit_line(x)",
            "let ignore = 1;",
            "split.Skip(2)",
        ] {
            assert!(!skips(line), "{line}");
        }
    }

    #[test]
    fn placeholders_are_seen() {
        for (path, line, before) in [
            ("a.rs", "// TODO handle errors", ""),
            ("a.rs", "    todo!()", ""),
            ("a.rs", "unimplemented!(\"x\")", ""),
            ("a.py", "    raise NotImplementedError", ""),
            ("a.py", "    pass  # later", ""),
            ("a.py", "    ...", "def a():"),
            ("a.py", "def a(): ...", ""),
            ("a.py", "    \"\"\"TODO: write\"\"\"", ""),
            ("a.js", "throw new Error('Not implemented');", ""),
            ("a.js", "/* FIXME */", ""),
            ("a.go", "panic(\"not implemented\")", ""),
            (
                "a.java",
                "throw new UnsupportedOperationException(\"Not implemented yet\");",
                "",
            ),
            ("a.js", "// ... rest of the code", ""),
        ] {
            assert!(is_placeholder(path, line, before), "{line}");
        }
        for (path, line, before) in [
            ("a.rs", "let todo = list.todo();", ""),
            ("a.js", "const TODO_LIST = [];", ""),
            ("a.js", "f('TODO', 1)", ""),
            ("a.py", "    pass", "def a():"),
            ("a.py", "    ...", "class A(Protocol):"),
            ("a.py", "x = a[...]", ""),
            ("a.rs", "    ...", "fn a():"),
        ] {
            assert!(!is_placeholder(path, line, before), "{line}");
        }
    }

    #[test]
    fn assertions_are_seen() {
        for line in [
            "assert a == b",
            "self.assertEqual(a, b)",
            "assert_eq!(a, b);",
            "expect(a).toBe(b)",
            "t.Errorf(\"no\")",
            "assertThat(a)",
        ] {
            assert!(asserts(line), "{line}");
        }
        for line in ["let a = b;", "print(a)", "t.Run(\"a\", nil)"] {
            assert!(!asserts(line), "{line}");
        }
    }
}
