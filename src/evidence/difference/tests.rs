//! Diffs as git writes them.

use super::*;
use proptest::prelude::*;

/// Makes the diff of one file; the lines begin with ` `, `+` or `-`.
fn file(path: &str, lines: &[&str]) -> String {
    let count = |sign: char| lines.iter().filter(|line| !line.starts_with(sign)).count();
    let mut text = format!(
        "diff --git a/{path} b/{path}\nindex 1..2 100644\n--- a/{path}\n+++ b/{path}\n@@ -10,{} +10,{} @@ somewhere\n",
        count('+'),
        count('-')
    );
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
    text
}

fn gone(path: &str, lines: &[&str]) -> String {
    file(path, lines).replace(&format!("+++ b/{path}"), "+++ /dev/null")
}

fn told(diff: &str) -> Vec<String> {
    let tell = |finding: Finding| {
        let (place, what) = finding.heading();
        format!("{place}: {what}: {}", finding.text)
    };
    inspect(diff).into_iter().map(tell).collect()
}

#[test]
fn placeholders_that_were_added_are_found_and_old_ones_are_not() {
    let diff = file(
        "src/a.py",
        &[
            " def a():",
            " # TODO old",
            "-    return 1",
            "+    ...",
            "+",
            "+def b():",
            "+    raise NotImplementedError",
        ],
    );
    assert_eq!(
        told(&diff),
        ["src/a.py:15: a placeholder is left: raise NotImplementedError",]
    );
    let diff = file("a.py", &[" def a():", "-    return 1", "+    ..."]);
    assert_eq!(told(&diff), ["a.py:11: a placeholder is left: ..."]);
    assert_eq!(told(&file("NOTES.md", &["+TODO: write"])), Vec::<String>::new());
}

#[test]
fn what_only_moved_is_no_finding() {
    let body = [
        "#[test]",
        "fn adds() {",
        "    assert_eq!(add(1, 2), 3); // TODO more",
        "}",
    ];
    let signed = |sign: &str| body.map(|line| format!("{sign}{line}"));
    let (minus, plus) = (signed("-"), signed("+"));
    let lines = |signed: &[String; 4]| signed.each_ref().map(|line| line.as_str().to_owned());
    let (minus, plus) = (lines(&minus), lines(&plus));
    let old = gone("tests/a.rs", &minus.each_ref().map(String::as_str));
    let new = file("tests/b.rs", &plus.each_ref().map(String::as_str));
    assert_eq!(told(&format!("{old}{new}")), Vec::<String>::new());
    assert_eq!(told(&old), ["tests/a.rs: a test was deleted: adds"]);
    assert_eq!(
        told(&new),
        ["tests/b.rs:12: a placeholder is left: assert_eq!(add(1, 2), 3); // TODO more"]
    );
}

#[test]
fn tests_that_are_not_run_any_more_are_found() {
    for (path, lines, expected) in [
        (
            "a.test.js",
            &[
                "-it('adds', () => {",
                "+it.skip('adds', () => {",
                "   expect(add(1, 2)).toBe(3);",
            ][..],
            &["a.test.js:10: a test is skipped: it.skip('adds', () => {"][..],
        ),
        (
            "test_a.py",
            &["+@pytest.mark.skip", " def test_a():", "     assert a() == 1"],
            &["test_a.py:10: a test is skipped: @pytest.mark.skip"],
        ),
        (
            "src/a.rs",
            &["-#[test]", " fn adds() {"],
            &["src/a.rs: a test was deleted: adds"],
        ),
        (
            "src/a.rs",
            &[" #[test]", "+#[ignore]", " fn adds() {"],
            &["src/a.rs:11: a test is skipped: #[ignore]"],
        ),
        (
            "a_test.go",
            &[
                "-func TestA(t *testing.T) {",
                "-\tt.Fatal(1)",
                "-}",
                " func TestB(t *testing.T) {",
            ],
            &["a_test.go: a test was deleted: TestA"],
        ),
        // Another one in its place: somebody should look, and no more.
        (
            "test_a.py",
            &[
                "-def test_a():",
                "-    assert a() == 1",
                "+def test_b():",
                "+    assert True",
            ],
            &["test_a.py: a test checks less than before: test_a (gone; others came)"],
        ),
        // Unskipped, or changed inside: nothing.
        ("a.test.js", &["-xit('adds', () => {", "+it('adds', () => {"], &[]),
        (
            "test_a.py",
            &[" def test_a():", "-    assert a() == 1", "+    assert a() == 2"],
            &[],
        ),
        (
            "test_a.py",
            &[
                " def test_a():",
                "-    assert a() == 1",
                "-    assert b() == 1",
                "+    a()",
            ],
            &["test_a.py: a test checks less than before: 2 assertions less"],
        ),
        // Outside of tests an assertion is the product's own.
        ("src/a.py", &["-    assert a"], &[]),
    ] {
        assert_eq!(told(&file(path, lines)), expected, "{lines:?}");
    }
    let diff = gone("spec/a_spec.rb", &["-describe A do", "-end"]);
    assert_eq!(
        told(&diff),
        ["spec/a_spec.rb: a test was deleted: the whole of spec/a_spec.rb"]
    );
}

#[test]
fn a_test_that_only_has_another_name_is_no_finding() {
    for (path, lines, expected) in [
        // Where it stood.
        (
            "test_calc.py",
            &[
                " import pytest",
                "-def test_mean_of_nothing():",
                "+def test_mean_of_an_empty_list():",
                "     with pytest.raises(ValueError):",
                "         mean([])",
            ][..],
            &[][..],
        ),
        // More of it follows behind the hunk.
        (
            "test_a.py",
            &["-def test_a():", "+def test_b():", "     a()", "     b()", "     c()"],
            &[],
        ),
        // Elsewhere, indented in another way.
        (
            "test_a.py",
            &[
                "-def test_a():",
                "-    assert a() == 1",
                "-",
                " def test_c():",
                "     assert c()",
                "+",
                "+def test_b():",
                "+  assert a()  == 1",
            ],
            &[],
        ),
        (
            "a.test.js",
            &[
                "-it('adds', () => expect(add(1, 2)).toBe(3));",
                "+it('adds two', () => expect(add(1, 2)).toBe(3));",
            ],
            &[],
        ),
        // The one that came is the renamed one, and replaces no other.
        (
            "test_a.py",
            &[
                "-def test_a():",
                "+def test_b():",
                "     assert a() == 1",
                "-def test_c():",
                "-    assert c() == 1",
            ],
            &["test_a.py: a test was deleted: test_c"],
        ),
        // One test does not stand for two.
        (
            "test_a.py",
            &[
                "-def test_a():",
                "-    assert a() == 1",
                "-def test_c():",
                "-    assert a() == 1",
                "+def test_b():",
                "+    assert a() == 1",
            ],
            &["test_a.py: a test was deleted: test_c"],
        ),
        // The beginning alone is the same.
        (
            "test_a.py",
            &[
                "-def test_a():",
                "+def test_b():",
                "     result = a()",
                "-    assert result == 1",
                "+    assert result",
            ],
            &["test_a.py: a test checks less than before: test_a (gone; others came)"],
        ),
    ] {
        assert_eq!(told(&file(path, lines)), expected, "{lines:?}");
    }
    // Three lines at the end of a hunk may be the beginning of two tests.
    let cut = |lines: &[&str]| file("test_a.py", lines);
    let one = cut(&["-def test_a():", "     a()", "     b()", "     c()"]);
    let other = cut(&["+def test_b():", "     a()", "     b()", "     c()"]);
    assert_eq!(
        told(&format!("{one}{other}")),
        ["test_a.py: a test checks less than before: test_a (gone; others came)"]
    );
}

#[test]
fn a_line_that_looks_like_a_head_is_a_line() {
    let diff = file("a.sql.py", &["--- a/test_x.py", "+++ b/test_y.py", "+# TODO"]);
    assert_eq!(told(&diff), ["a.sql.py:11: a placeholder is left: # TODO"]);
}

proptest! {
    #[test]
    fn any_text_is_walked_through(diff in r"((diff --git a/x b/x|--- a/test_a.py|\+\+\+ b/a.test.js|@@ -[0-9]{0,12},[0-9]{0,3} \+[0-9]{0,3} @@|[+ -]\PC{0,40}|[+-]def test_[a-c]\(\):|\\ No)\n){0,60}") {
        let found = inspect(&diff);
        prop_assert!(found.len() <= MOST_FINDINGS);
        prop_assert!(found.iter().all(|finding| finding.text.len() <= LONGEST_TEXT));
    }

    #[test]
    fn a_change_and_its_opposite_lose_nothing(lines in proptest::collection::vec(r"(def test_[a-d]\(\):|    assert [a-d]|    # TODO [a-d]|    pytest.skip\([a-d]\))", 0..20)) {
        let signed = |sign: &str| lines.iter().map(|line| format!("{sign}{line}")).collect::<Vec<_>>();
        let both = [signed("-"), signed("+")].concat();
        let both: Vec<&str> = both.iter().map(String::as_str).collect();
        prop_assert_eq!(told(&file("test_a.py", &both)), Vec::<String>::new());
    }
}

#[test]
fn changes_of_how_tests_are_run_are_named_once_for_each_file() {
    for (path, lines, said) in [
        (
            "tests/conftest.py",
            &["+def pytest_sessionfinish(session):", "+    session.exitstatus = 0"][..],
            "10: how the tests are run was changed: def pytest_sessionfinish(session):",
        ),
        (
            "pytest.ini",
            &["+[pytest]", "+addopts = --collect-only"],
            "10: how the tests are run was changed: [pytest]",
        ),
        (
            "setup.cfg",
            &[" [tool:pytest]", " testpaths = tests", "-norecursedirs = x"],
            " how the tests are run was changed: norecursedirs = x",
        ),
        (
            "tox.ini",
            &[" [testenv]", "-commands = pytest", "+commands = true"],
            "11: how the tests are run was changed: commands = true",
        ),
        (
            "pyproject.toml",
            &["+addopts = \"-k nothing\""],
            "10: how the tests are run was changed: addopts = \"-k nothing\"",
        ),
        (
            "package.json",
            &["-    \"test\": \"jest\",", "+    \"test\": \"true\","],
            "10: how the tests are run was changed: \"test\": \"true\",",
        ),
        (
            "web/jest.config.js",
            &["+module.exports = { testMatch: [] };"],
            "10: how the tests are run was changed: module.exports = { testMatch: [] };",
        ),
        (
            "vitest.config.ts",
            &["+exclude: ['**']"],
            "10: how the tests are run was changed: exclude: ['**']",
        ),
        (
            ".coveragerc",
            &["+[run]"],
            "10: how the tests are run was changed: [run]",
        ),
        (
            "Makefile",
            &[" test:", "-\tpytest", "+\ttrue"],
            "11: how the tests are run was changed: true",
        ),
        (
            "pom.xml",
            &["+    <skipTests>true</skipTests>"],
            "10: how the tests are run was changed: <skipTests>true</skipTests>",
        ),
        (
            "build.gradle",
            &["+test { enabled = false }"],
            "10: how the tests are run was changed: test { enabled = false }",
        ),
        (
            "Cargo.toml",
            &["+autotests = false"],
            "10: how the tests are run was changed: autotests = false",
        ),
        (
            "sitecustomize.py",
            &["+import os"],
            "10: how the tests are run was changed: import os",
        ),
    ] {
        assert_eq!(told(&file(path, lines)), [format!("{path}:{said}")], "{path}");
    }
}

#[test]
fn other_changes_of_the_same_files_are_no_finding() {
    for (path, lines) in [
        (
            "pyproject.toml",
            &[" [project]", "-version = \"1\"", "+version = \"2\""][..],
        ),
        (
            "pyproject.toml",
            &[" [tool.pytest.ini_options]", " x = 1", " [project]", "+name = \"a\""],
        ),
        ("package.json", &["+  \"latest\": \"1\","]),
        ("Makefile", &[" test:", " \tpytest", " build:", "+\tgo build"]),
        ("node_modules/x/jest.config.js", &["+x"]),
        ("src/a.py", &["+addopts = 1"]),
    ] {
        assert_eq!(told(&file(path, lines)), Vec::<String>::new(), "{path}");
    }
    let new = file("package.json", &["+{ \"scripts\": { \"test\": \"jest\" } }"]);
    let new = new.replace("--- a/package.json", "--- /dev/null");
    assert_eq!(told(&new), Vec::<String>::new());
}

#[test]
fn the_lines_of_each_file_are_counted() {
    let diff = file("a.py", &[" x", "-y", "+z", "+z"]) + &gone("b.py", &["-x"]);
    let of = |path: &str, added, removed| Touched {
        path: path.to_owned(),
        added,
        removed,
    };
    assert_eq!(touched(&diff), [of("a.py", 2, 1), of("b.py", 0, 1)]);
    assert_eq!(touched(""), []);
}
