//! The message of a delivered commit: the model's text, sanitized, and the run's trailer once.
//!
//! Forges act on messages: they close items, notify people and other items of mentions, skip
//! checks, and show trailers as facts about who wrote or approved a commit, below a verified
//! signature if commits are signed. So references and mentions are broken by a visible space, CI
//! directives lose their brackets, and only trailers that name nobody stay.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use crate::plain::one_line;

const TRAILER: &str = "Coding-Agent-Run";
const MAX_SUBJECT: usize = 200;
const MAX_MESSAGE: usize = 64 * 1024;

/// Trailers that describe the change and name nobody.
const TRAILERS: [&str; 6] = ["Refs", "See-also", "Related", "Note", "BREAKING-CHANGE", "Deprecated"];

/// Returns `message` as it is written into the delivered commit.
pub fn delivered(message: &str, run: &str) -> String {
    let text = seen(message);
    let mut lines: Vec<String> = text.lines().map(|line| inert(line.trim_end())).collect();
    let mut length = 0;
    lines.retain(|line| {
        length += line.len() + 1;
        length <= MAX_MESSAGE
    });
    let lines = without_foreign_trailers(lines);
    let subject = match lines.first() {
        Some(line) => shortened(line),
        None => "Changes without a message".to_owned(),
    };
    let body = lines.get(1..).unwrap_or_default();
    let joins = ends_in_trailers(body);
    let mut result = subject;
    for line in body {
        result.push('\n');
        result.push_str(line);
    }
    result.push_str(if joins { "\n" } else { "\n\n" });
    result + TRAILER + ": " + run + "\n"
}

/// Returns a stranger's title, sanitized, as the title of a change: a forge may make it the subject
/// of a merge commit.
pub fn title(text: &str) -> String {
    inert(&one_line(&seen(text)))
}

fn seen(text: &str) -> String {
    text.replace("\r\n", "\n")
        .chars()
        .filter(|char| matches!(char, '\n' | '\t') || !(char.is_control() || is_invisible(*char)))
        .collect()
}

/// Maximum nesting of brackets around a directive of 60 characters.
const DEEPEST_BRACKETS: usize = 32;

/// Returns a line on which no forge acts.
fn inert(line: &str) -> String {
    static DIRECTIVE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\[([^\[\]]{1,60})\]"));
    static COMMAND: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\b(?:skip|no|norun|nobuild)\b|_skip|skip_"));
    static STARS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\*{3,}\s*(no_?ci)\s*\*{3,}"));
    static CHECKS: LazyLock<Regex> = LazyLock::new(|| pattern(r"(?i)\b(skip|request)-checks\s*:"));
    static REFERENCE: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"([#!])([0-9])|\b((?i:gh|gl)|[A-Z][A-Z0-9_]*)-([0-9])"));
    static ADDRESS: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"\S*://\S*/(?:issues?|pulls?|merge_requests|work_items|epics|commits?|-)/\S*"));
    static SCHEME: LazyLock<Regex> = LazyLock::new(|| pattern(r"://(\S)"));
    let mut line = line.to_owned();
    // Brackets may be nested.
    for _ in 0..DEEPEST_BRACKETS {
        let found = DIRECTIVE.replace_all(&line, |found: &Captures<'_>| {
            if COMMAND.is_match(&found[1]) {
                format!("({})", &found[1])
            } else {
                found[0].to_owned()
            }
        });
        if found == line {
            break;
        }
        line = found.into_owned();
    }
    let line = STARS.replace_all(&line, "$1");
    let line = CHECKS.replace_all(&line, "$1 checks:");
    let line = ADDRESS.replace_all(&line, |found: &Captures<'_>| {
        SCHEME.replace_all(&found[0], ":// $1").into_owned()
    });
    let line = REFERENCE.replace_all(&line, |found: &Captures<'_>| match (found.get(3), found.get(4)) {
        (Some(key), Some(_)) if STANDARDS.contains(&key.as_str()) => found[0].to_owned(),
        (Some(key), Some(number)) => format!("{} {}", key.as_str(), number.as_str()),
        _ => format!("{} {}", &found[1], &found[2]),
    });
    without_mentions(&line)
}

/// Names of standards that look like an issue tracker's project key.
const STANDARDS: [&str; 5] = ["UTF", "SHA", "ISO", "RFC", "BASE"];

/// Breaks mentions. A pattern would consume the character after `@`, which may precede another.
fn without_mentions(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let is_in_word = safe
            .chars()
            .next_back()
            .is_some_and(|before| before.is_ascii_alphanumeric());
        safe.push(letter);
        if letter == '@' && !is_in_word && letters.peek().is_some_and(|next| !next.is_whitespace()) {
            safe.push(' ');
        }
    }
    safe
}

/// Removes lines that attribute the commit to somebody, wherever they are, with their indented
/// continuation lines. If the last paragraph consists of trailers only, unknown ones become prose.
fn without_foreign_trailers(lines: Vec<String>) -> Vec<String> {
    let mut is_dropped = false;
    let mut kept: Vec<String> = Vec::with_capacity(lines.len());
    for line in lines {
        let continues = is_dropped && line.starts_with([' ', '\t']) && !line.trim().is_empty();
        is_dropped = continues || key(&line).is_some_and(attributes);
        let is_leading = kept.is_empty() && line.is_empty();
        if !is_dropped && !is_leading {
            kept.push(line);
        }
    }
    while kept.last().is_some_and(String::is_empty) {
        kept.pop();
    }
    let last = kept
        .iter()
        .rposition(String::is_empty)
        .map_or(kept.len(), |empty| empty + 1);
    let is_trailer = |line: &String| key(line).is_some_and(is_token) || line.starts_with([' ', '\t']);
    if kept[last..].iter().all(is_trailer) {
        for line in &mut kept[last..] {
            if let Some((key, value)) = line.split_once(':')
                && is_token(key.trim())
                && !is_known(key.trim())
            {
                let prose = format!("{} - {}", key.trim(), value.trim());
                prose.trim_end().clone_into(line);
            }
        }
    }
    kept
}

/// Returns the text before the first colon.
fn key(line: &str) -> Option<&str> {
    line.split_once(':')
        .map(|(key, _)| key.trim_matches([' ', '\t', '>', '*', '-']))
}

fn is_token(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn is_known(key: &str) -> bool {
    TRAILERS.iter().any(|known| known.eq_ignore_ascii_case(key))
}

/// Returns true if a trailer with this key names people, or the run, which only the program may
/// name.
fn attributes(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    is_token(&key) && (key.ends_with("-by") || ["cc", "change-id", "author", "on-behalf-of"].contains(&key.as_str()))
        || key.eq_ignore_ascii_case(TRAILER)
}

#[expect(
    clippy::expect_used,
    reason = "the patterns are written above, and the tests use them all"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this file")
}

fn shortened(subject: &str) -> String {
    if subject.chars().count() <= MAX_SUBJECT {
        return subject.to_owned();
    }
    let kept: String = subject.chars().take(MAX_SUBJECT - 1).collect();
    format!("{kept}…")
}

/// Returns true if the last paragraph, after an empty line, consists of `Key: value` lines only.
fn ends_in_trailers(body: &[String]) -> bool {
    let Some(start) = body.iter().rposition(String::is_empty) else {
        return false;
    };
    let paragraph = &body[start + 1..];
    let is_trailer = |line: &String| {
        line.split_once(": ").is_some_and(|(key, value)| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            !key.is_empty() && key.bytes().all(plain) && !value.is_empty()
        })
    };
    !paragraph.is_empty() && paragraph.iter().all(is_trailer)
}

/// Returns true for characters that are invisible or reverse the text: a reviewer must see
/// everything.
fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_trailer_stands_alone_after_prose_and_joins_other_trailers() {
        for (message, expected) in [
            ("Greet\n", "Greet\n\nCoding-Agent-Run: 7\n"),
            ("Greet\n\nBecause.\n", "Greet\n\nBecause.\n\nCoding-Agent-Run: 7\n"),
            (
                "Greet\n\nBecause.\n\nRefs: the README\n",
                "Greet\n\nBecause.\n\nRefs: the README\nCoding-Agent-Run: 7\n",
            ),
            ("fix: Greet\n", "fix: Greet\n\nCoding-Agent-Run: 7\n"),
            ("\n\n  \n", "Changes without a message\n\nCoding-Agent-Run: 7\n"),
            ("Greet\n\nCoding-Agent-Run: forged\n", "Greet\n\nCoding-Agent-Run: 7\n"),
            ("Gr\u{1b}[31meet\u{202e}\r\n", "Gr[31meet\n\nCoding-Agent-Run: 7\n"),
        ] {
            assert_eq!(delivered(message, "7"), expected, "{message:?}");
        }
    }

    #[test]
    fn no_forge_acts_on_a_message() {
        for (line, expected) in [
            ("Fixes #1, closes acme/other#2", "Fixes # 1, closes acme/other# 2"),
            ("Closes GH-7, JIRA-12, UTF-8", "Closes GH 7, JIRA 12, UTF-8"),
            (
                "Fixes https://forge.example/a/b/issues/7, see https://docs.example/a",
                "Fixes https:// forge.example/a/b/issues/7, see https://docs.example/a",
            ),
            (
                "cc @acme/everyone, bob@example.org",
                "cc @ acme/everyone, bob@example.org",
            ),
            ("@@all", "@ @ all"),
            ("Greet [skip ci] [CI Skip] [no ci]", "Greet (skip ci) (CI Skip) (no ci)"),
            (
                "Greet [skip actions] [azp skip] [ci-skip]",
                "Greet (skip actions) (azp skip) (ci-skip)",
            ),
            ("Greet ***NO_CI*** [x] [a-b]", "Greet NO_CI [x] [a-b]"),
            ("[ski\u{200b}p ci]", "(skip ci)"),
            ("skip-checks: true", "skip checks: true"),
        ] {
            assert_eq!(title(line), expected);
            assert_eq!(delivered(line, "7"), format!("{expected}\n\nCoding-Agent-Run: 7\n"));
        }
    }

    #[test]
    fn nobody_is_made_an_author_or_a_reviewer() {
        for text in [
            "Co-authored-by: Alice <alice@example.org>",
            "Signed-off-by: Alice <alice@example.org>\n  and more of it",
            "reviewed-by : Alice",
            "Approved-By: Alice\nChange-Id: I1234",
            "skip-checks: true\nCo-authored-by: A <a@b>",
            "Coding-Agent-Run: 00000000\n\nAcked-by: B",
        ] {
            let message = delivered(&format!("Greet\n\nBecause.\n\n{text}\n"), "7");
            let is_left = message == "Greet\n\nBecause.\n\nCoding-Agent-Run: 7\n"
                || message == "Greet\n\nBecause.\n\nskip checks: true\n\nCoding-Agent-Run: 7\n";
            assert!(is_left, "{message}");
        }
        let inside = delivered("Greet\n\nCo-authored-by: A <a@b>\n\nBecause: of this\nand that.\n", "7");
        assert_eq!(
            inside,
            "Greet\n\n\nBecause: of this\nand that.\n\nCoding-Agent-Run: 7\n"
        );
        let unknown = delivered("Greet\n\nRefs: a\nAnything-Else: at all\n", "7");
        assert_eq!(
            unknown,
            "Greet\n\nRefs: a\nAnything-Else - at all\n\nCoding-Agent-Run: 7\n"
        );
    }

    #[test]
    fn a_very_long_message_is_shortened() {
        let message = delivered(&format!("{}\n\n{}", "s".repeat(500), "line\n".repeat(50_000)), "7");
        assert_eq!(
            message.lines().next().map(|line| line.chars().count()),
            Some(MAX_SUBJECT)
        );
        assert!(message.len() < MAX_MESSAGE + 300);
    }

    proptest! {
        #[test]
        fn writing_a_message_again_changes_nothing(message in "(?s).{0,200}") {
            let once = delivered(&message, "7");
            prop_assert_eq!(delivered(&once, "7"), once.clone());
            prop_assert_eq!(once.matches("Coding-Agent-Run: 7").count(), 1);
        }
    }
}
