//! Lines that GitLab would take for commands of the bot.
//!
//! A line `/close` or `/merge` in a note is carried out with the bot's rights. The text may come from a model that read
//! a stranger's words, so such lines are made into plain text. GitLab leaves code blocks alone, and so does this.

/// Returns `text` with a backslash, which Markdown does not show, before each quick action.
pub(super) fn disarmed(text: &str) -> String {
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            is_code = !is_code;
        }
        if !is_code && is_action(start) {
            let indent = &line[..line.len() - start.len()];
            lines.push(format!("{indent}\\{start}"));
        } else {
            lines.push(line.to_owned());
        }
    }
    lines.join("\n")
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
        let text = "Done.\n/close\n  /merge now\n/etc/passwd\n```\n/close\n```\n/label ~x\n/";
        let safe = "Done.\n\\/close\n  \\/merge now\n/etc/passwd\n```\n/close\n```\n\\/label ~x\n/";
        assert_eq!(disarmed(text), safe);
    }
}
