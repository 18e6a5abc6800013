//! Lines that GitLab would take for commands of the bot.
//!
//! A line `/close` or `/merge` in a note is carried out with the bot's rights. The text may come
//! from a model that read a stranger's words, so such lines are made into plain text. Lines of
//! code, too: GitLab leaves code alone, but it does not find the ends of code where Markdown has
//! them, and a backslash that shows is better than a request that is merged.

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

/// A slash and a word. A path has a slash after it, or a dot.
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
