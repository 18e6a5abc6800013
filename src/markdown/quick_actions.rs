//! Escapes lines that GitLab would execute as the bot's quick actions.
//!
//! A line `/close` or `/merge` in a note is executed with the bot's rights. The text may come from
//! a model that read a stranger's words, so such lines become plain text. That includes lines of
//! code: GitLab skips code, but does not find its ends where Markdown does, and a visible backslash
//! is better than a merged request.

/// Returns `text` with a backslash before each quick action.
pub fn disarmed(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let lines = text.split('\n').map(|line| {
        let start = line.trim_start();
        if !is_action(start) {
            return line.to_owned();
        }
        let indent = &line[..line.len() - start.len()];
        format!("{indent}\\{start}")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns true if the line begins with a slash and a word; a path contains another slash or a dot.
fn is_action(line: &str) -> bool {
    let Some(rest) = line.strip_prefix('/') else {
        return false;
    };
    let word = rest.split_whitespace().next().unwrap_or_default();
    !rest.starts_with(char::is_whitespace)
        && !word.is_empty()
        && word
            .chars()
            .all(|character| character.is_ascii_alphanumeric() || character == '_' || character == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_become_text_and_everything_else_stays() {
        let text = "Done.\n/close\n  /merge now\n/etc/passwd\n```\nls /close\n```\n/label ~x\n/";
        let safe = "Done.\n\\/close\n  \\/merge now\n/etc/passwd\n```\nls /close\n```\n\\/label ~x\n/";
        assert_eq!(disarmed(text), safe);
    }

    #[test]
    fn nothing_passes_for_code() {
        for text in [
            "~~~\n```\n~~~\n/close",
            "````\n```\n/close\n````",
            "```\n/close\n```",
            "a\r/close",
        ] {
            let safe = disarmed(text);
            assert!(safe.contains("\n\\/close"), "{safe}");
        }
    }
}
