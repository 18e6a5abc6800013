//! The message of a delivered commit: the model's words, cleaned, and the run's trailer once.

const TRAILER: &str = "Coding-Agent-Run";
const MAX_SUBJECT: usize = 200;
const MAX_MESSAGE: usize = 64 * 1024;

/// Returns `message` as it goes into our commit.
pub fn delivered(message: &str, run: &str) -> String {
    let text: String = message
        .replace("\r\n", "\n")
        .chars()
        .filter(|char| matches!(char, '\n' | '\t') || !(char.is_control() || is_invisible(*char)))
        .collect();
    let is_ours = |line: &&str| {
        line.split_once(':')
            .is_some_and(|(key, _)| key.trim().eq_ignore_ascii_case(TRAILER))
    };
    // A run is named by the program alone, so a trailer that was there already goes.
    let mut lines: Vec<&str> = text.lines().map(str::trim_end).filter(|line| !is_ours(line)).collect();
    let mut length = 0;
    lines.retain(|line| {
        length += line.len() + 1;
        length <= MAX_MESSAGE
    });
    let first = lines.iter().position(|line| !line.is_empty()).unwrap_or(lines.len());
    lines.drain(..first);
    while lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
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

fn shortened(subject: &str) -> String {
    if subject.chars().count() <= MAX_SUBJECT {
        return subject.to_owned();
    }
    let kept: String = subject.chars().take(MAX_SUBJECT - 1).collect();
    format!("{kept}…")
}

/// Tells whether the last paragraph, set off by an empty line, is `Key: value` lines only.
fn ends_in_trailers(body: &[&str]) -> bool {
    let Some(start) = body.iter().rposition(|line| line.is_empty()) else {
        return false;
    };
    let paragraph = &body[start + 1..];
    let is_trailer = |line: &&str| {
        line.split_once(": ").is_some_and(|(key, value)| {
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            !key.is_empty() && key.bytes().all(plain) && !value.is_empty()
        })
    };
    !paragraph.is_empty() && paragraph.iter().all(is_trailer)
}

/// Characters that show nothing or turn the text around: a reviewer must see what is there.
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
                "Greet\n\nBecause.\n\nCo-authored-by: A <a@b.example>\n",
                "Greet\n\nBecause.\n\nCo-authored-by: A <a@b.example>\nCoding-Agent-Run: 7\n",
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
