//! The report to the model on checks that did not pass: command, exit code, the first failures with
//! their places, and the end of the output. Its length is bounded.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;
use uuid::Uuid;

use super::check::{Checked, Excuse};
use super::failures::without_colours;
use super::pattern;

/// Most checks that are reported in full; the others are only named.
const MOST_CHECKS: usize = 5;

/// Longest output that is told before the work, in bytes.
const LONGEST_BEFORE_WORK: usize = 1_500;

/// Explains a check that depends on something in the container the model works in.
const ONLY_AT_WORK: &str = "It passes in the container you work in, and fails as shown in a new one that has what you would deliver, after the plan's \
     set-up commands and the commands of yours that only installed dependencies. Something else in your container makes it pass: put it \
     into the project, or add a command that sets up a new container with tell_program, add_set_up.\n";

/// Returns the report on the checks that count against the work. `notes` are paragraphs on them for
/// its end: lines of tests at which they failed, and imports that are missing.
pub fn digest(checks: &[Checked], notes: &str) -> String {
    let open: Vec<&Checked> = checks.iter().filter(|check| check.is_open()).collect();
    let mut text = "The program checked the result, and it does not pass yet:\n".to_owned();
    for check in open.iter().take(MOST_CHECKS) {
        let _ = write!(text, "\n$ {}\n[{}]\n", check.command, ending(check));
        if check.passes_only_at_work {
            text.push_str(ONLY_AT_WORK);
        }
        if !check.failures.is_empty() {
            text.push_str("First failures:\n");
            for failure in &check.failures {
                let _ = writeln!(text, "- {failure}");
            }
            if check.more > 0 {
                let _ = writeln!(text, "- and {} more", check.more);
            }
            if check.old > 0 {
                let _ = writeln!(
                    text,
                    "What else fails ({}) failed before your change already.",
                    check.old
                );
            }
            text.push_str("The end of the output:\n");
        }
        let _ = writeln!(text, "{}", without_colours(&check.tail).trim_end());
    }
    for check in open.iter().skip(MOST_CHECKS) {
        let _ = write!(text, "\n$ {}\n[{}]\n", check.command, ending(check));
    }
    text.push_str(notes);
    text.push_str("\nFix it, then finish again. Do not weaken the checks.");
    text
}

/// Returns the question about checks that fail as they failed before the work; `None` if there are
/// none. `notes` are as in [`digest`].
pub fn old_failures(checks: &[Checked], notes: &str) -> Option<String> {
    let failing: Vec<&Checked> = checks
        .iter()
        .filter(|check| check.excuse == Some(Excuse::FailedBefore))
        .collect();
    if failing.is_empty() {
        return None;
    }
    let mut text = "These checks failed before you changed anything, and still fail:\n".to_owned();
    for check in failing.iter().take(MOST_CHECKS) {
        let _ = write!(text, "\n$ {}\n[{}]\n", check.command, ending(check));
        let _ = writeln!(text, "{}", without_colours(&check.tail).trim_end());
    }
    text.push_str(notes);
    text.push_str(
        "\nIf the task is about one of these failures, your change does not mend it yet: find out why, and mend it without weakening the \
         tests. If none belongs to the task, finish again; they are named in the pull request.",
    );
    Some(text)
}

/// Returns the paragraph on a check that fails before any work, for the task of a model that sees
/// no tests. `notes` are lines of the tests.
pub fn before_work(check: &Checked, notes: &str) -> String {
    let output = before_work_output(check);
    format!(
        "\nThe project's tests fail before the work:\n\n{output}{notes}\nIf the task is about one of these failures, it has to be gone afterwards, and \
         the tests stay as they are.\n"
    )
}

/// Returns the same paragraph where the project has the work of an earlier run, which may be what
/// breaks them.
pub fn with_earlier_work(check: &Checked, notes: &str) -> String {
    let output = before_work_output(check);
    format!(
        "\nThe project has the work of an earlier run, and its tests fail with that:\n\n{output}{notes}\nWhat did not fail before that work has to be gone \
         afterwards, and so has what the task is about; the tests stay as they are.\n"
    )
}

/// Returns command, ending and the end of the output of a check, for what is told before the work.
fn before_work_output(check: &Checked) -> String {
    let output = without_colours(&check.tail);
    let output = output.trim_end();
    let start = output.ceil_char_boundary(output.len().saturating_sub(LONGEST_BEFORE_WORK));
    format!("$ {}\n[{}]\n{}\n", check.command, ending(check), &output[start..])
}

fn ending(check: &Checked) -> String {
    let ending = check
        .exit_code
        .map_or_else(|| "did not end".to_owned(), |code| format!("exit code {code}"));
    format!("{ending}, expected {}", check.expected)
}

/// Returns an id that stays the same while the same checks fail in the same way.
pub(super) fn fingerprint(open: &[&Checked]) -> String {
    let mut text = String::new();
    for check in open {
        let _ = writeln!(text, "{} {:?}", check.command, check.exit_code);
        // A line number changes with every edit above it, so it does not count where there is
        // something better.
        let mut failures: Vec<String> = check
            .failures
            .iter()
            .map(|failure| settled(&format!("{} {}", failure.subject(), failure.message)))
            .collect();
        failures.sort();
        if failures.is_empty() {
            failures.push(settled(&check.tail));
        }
        let _ = writeln!(text, "{} {}", failures.join("\n"), check.more);
    }
    Uuid::new_v5(&Uuid::NAMESPACE_OID, text.as_bytes()).to_string()
}

/// Returns `text` without what differs between two runs: times, durations, addresses, ids,
/// temporary files.
fn settled(text: &str) -> String {
    static FLEETING: LazyLock<Regex> = LazyLock::new(|| {
        pattern(concat!(
            r"0x[0-9a-fA-F]+",
            r"|\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
            r"|\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?",
            r"|\b\d\d:\d\d:\d\d(?:[.,]\d+)?",
            r"|\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s|sec|secs|seconds?|min|mins|minutes?)\b",
            r"|\bduration_ms:? [\d.]+",
            r"|(?:/private)?(?:/var)?/(?:tmp|folders)/[^\s'\x22:,)]+",
            r"|\b(?:127\.0\.0\.1|localhost|\[::1\]):\d+",
            r"|\b(?i:pid|process|port|seed)[ :=]+\d+",
            r"|' \(\d+\) panicked",
            r"|-[0-9a-f]{16}\b",
        ))
    });
    let mut settled = without_colours(text);
    // Replacing one part may make another of what is next to it, as with a time in front of a unit.
    while let Cow::Owned(shorter) = FLEETING.replace_all(&settled, "…") {
        settled = shorter;
    }
    settled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::check::Ended;
    use proptest::prelude::*;

    fn failing(output: &str) -> Checked {
        Checked::new(
            "make test",
            0,
            &Ended::new(Some(2), output.to_owned(), "/workspace/project"),
        )
    }

    #[test]
    fn the_model_is_told_what_fails_and_where() {
        let mut output = "noise\n".repeat(2_000);
        for number in 1..=12 {
            let _ = writeln!(
                output,
                "src/a.c:{number}:3: error: '\u{1b}[1mx{number}\u{1b}[0m' undeclared"
            );
        }
        let passed = Checked {
            exit_code: Some(0),
            ..failing("")
        };
        let hanging = Checked {
            command: "sleep 600".to_owned(),
            exit_code: None,
            ..failing("waiting")
        };
        let mut check = failing(&output);
        check.tail = check.tail[check.tail.len() - 52..].to_owned();
        insta::assert_snapshot!(digest(&[passed, check, hanging], "\nThe test's own lines.\n"), @"
        The program checked the result, and it does not pass yet:

        $ make test
        [exit code 2, expected 0]
        First failures:
        - src/a.c:1: 'x1' undeclared
        - src/a.c:2: 'x2' undeclared
        - src/a.c:3: 'x3' undeclared
        - src/a.c:4: 'x4' undeclared
        - src/a.c:5: 'x5' undeclared
        - src/a.c:6: 'x6' undeclared
        - src/a.c:7: 'x7' undeclared
        - src/a.c:8: 'x8' undeclared
        - src/a.c:9: 'x9' undeclared
        - src/a.c:10: 'x10' undeclared
        - and 2 more
        The end of the output:
        lared
        src/a.c:12:3: error: 'x12' undeclared

        $ sleep 600
        [did not end, expected 0]
        waiting

        The test's own lines.

        Fix it, then finish again. Do not weaken the checks.
        ");
    }

    #[test]
    fn what_differs_from_time_to_time_is_no_difference() {
        for (one, other) in [
            ("Ran 2 tests in 0.001s", "Ran 2 tests in 1.2s"),
            ("at 2026-11-22T02:45:40.1Z: no", "at 2026-11-23T12:00:00Z: no"),
            ("02:45:40 no", "23:59:59.123 no"),
            ("<object at 0x7f00aa>", "<object at 0x7f11bb>"),
            ("No such file: '/tmp/tmpab12/x'", "No such file: '/tmp/tmpcd34/x'"),
            ("connect 127.0.0.1:4711", "connect 127.0.0.1:4712"),
            ("thread 'a' (123) panicked", "thread 'a' (456) panicked"),
            ("deps/rt-2b40ded8cd270929)", "deps/rt-0000ded8cd270929)"),
            ("\u{1b}[31mno\u{1b}[0m", "no"),
        ] {
            assert_eq!(settled(one), settled(other));
            assert_eq!(fingerprint(&[&failing(one)]), fingerprint(&[&failing(other)]));
        }
        for (one, other) in [
            ("3 failed", "2 failed"),
            ("a.c:1:1: error: x", "a.c:1:1: error: y"),
            ("a.c:1:1: error: x", "b.c:1:1: error: x"),
        ] {
            assert_ne!(fingerprint(&[&failing(one)]), fingerprint(&[&failing(other)]));
        }
        // A line that has moved is the same line.
        assert_eq!(
            fingerprint(&[&failing("a.c:1:1: error: x")]),
            fingerprint(&[&failing("a.c:9:1: error: x")])
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn no_output_makes_a_digest_too_long(parts in proptest::collection::vec(r"(FAIL: test \(x\)\n|[a-z]{1,9}\.c:[0-9]{1,5}: [^\n]{0,400}\n|.{0,200}\n)", 0..100), count in 0_usize..20) {
            let checks = vec![failing(&parts.concat()); count];
            prop_assert!(digest(&checks, "").len() <= 200 + MOST_CHECKS * 11_000);
        }

        #[test]
        fn settling_twice_is_settling_once(text in r"([0-9]{1,4}|ms|s|:|-|\.|0x|/tmp/|[a-f]| |T|Z|\n){0,60}") {
            let once = settled(&text);
            prop_assert_eq!(settled(&once), once);
        }
    }
}
