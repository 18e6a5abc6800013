//! Words of a model, fit to stand in a comment under the bot's name.
//!
//! A model repeats what strangers wrote. Printed as it is, that could call people and teams (`@all`), command other bots
//! (`/merge`, `@bot merge`), close issues when the request is merged (`Fixes #7`), hide what the program says below it
//! (`<!--`, an open code block) or load a picture from anywhere, with anything in its address. Here all of this loses its
//! effect and stays readable. Code is left as it is, so that it can be copied; in doubt it is not taken for code.
//! Does not judge what is said, and leaves plain references and links alone.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// No one sees it, and no pattern of a forge reads over it.
const GAP: char = '\u{200b}';

/// Returns Markdown that looks like `text` and does nothing.
pub fn harmless(text: &str) -> String {
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    let mut open: Option<Fence<'_>> = None;
    for line in text.trim().lines() {
        if let Some(fence) = &open {
            if fence.is_closed_by(line) {
                open = None;
            }
            lines.push(Cow::Borrowed(line));
            continue;
        }
        open = Fence::opened_by(line);
        lines.push(match open {
            Some(_) => Cow::Borrowed(line),
            None => Cow::Owned(prose(line)),
        });
    }
    if let Some(fence) = open {
        lines.push(Cow::Borrowed(fence.0));
    }
    lines.join("\n")
}

/// Returns the first line of `text`, at most `most` characters of it, made harmless.
pub fn harmless_line(text: &str, most: usize) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let end = line.char_indices().nth(most).map(|(end, _)| end);
    harmless(&end.map_or_else(|| line.to_owned(), |end| format!("{}…", &line[..end])))
}

/// Returns an account's name as it may stand in a text; `None` where the forge does not tell it any more.
pub fn harmless_name(name: &str) -> Option<String> {
    const MOST: usize = 100;
    Some(harmless_line(name, MOST)).filter(|name| !name.is_empty())
}

/// The signs that open a block of code.
struct Fence<'text>(&'text str);

impl<'text> Fence<'text> {
    fn opened_by(line: &'text str) -> Option<Self> {
        let (mark, rest) = fence_mark(line)?;
        // "``` a`b" is a code span that goes wrong, and no block.
        (mark.starts_with('~') || !rest.contains('`')).then_some(Self(mark))
    }

    fn is_closed_by(&self, line: &str) -> bool {
        fence_mark(line).is_some_and(|(mark, rest)| mark.starts_with(self.0) && rest.trim().is_empty())
    }
}

/// Returns the signs that a line begins with, if they can open or close a block, and what follows them.
fn fence_mark(line: &str) -> Option<(&str, &str)> {
    let start = line.trim_start_matches(' ');
    let sign = start.chars().next().filter(|sign| matches!(sign, '`' | '~'))?;
    let rest = start.trim_start_matches(sign);
    let mark = &start[..start.len() - rest.len()];
    (line.len() - start.len() < 4 && mark.len() >= 3).then_some((mark, rest))
}

fn prose(line: &str) -> String {
    static COMMAND: LazyLock<Regex> = LazyLock::new(|| pattern(r"^([\s>]*)(/[A-Za-z][\w-]*(?:\s|$))"));
    let line = COMMAND.replace(line, r"${1}\${2}");
    let mut safe = String::with_capacity(line.len());
    let mut rest = line.as_ref();
    while let Some(start) = rest.find('`') {
        let is_escaped = rest[..start].chars().rev().take_while(|sign| *sign == '\\').count() % 2 == 1;
        let end = if is_escaped {
            start + 1
        } else {
            start + span(&rest[start..])
        };
        safe.push_str(&plain(&rest[..start]));
        safe.push_str(&rest[start..end]);
        rest = &rest[end..];
    }
    safe.push_str(&plain(rest));
    safe
}

/// Returns the length of the code span that `text` begins with, or of the backticks that open none. What a table could
/// tear apart is none.
fn span(text: &str) -> usize {
    let rest = text.trim_start_matches('`');
    let mark = text.len() - rest.len();
    let mut from = 0;
    while let Some(start) = rest[from..].find('`').map(|start| from + start) {
        let after = rest[start..].trim_start_matches('`');
        let end = rest.len() - after.len();
        if end - start == mark {
            return if rest[..start].contains('|') { mark } else { mark + end };
        }
        from = end;
    }
    mark
}

fn plain(text: &str) -> String {
    static TAG: LazyLock<Regex> = LazyLock::new(|| pattern(r"<([A-Za-z/!?])"));
    static PICTURE: LazyLock<Regex> = LazyLock::new(|| pattern(r"!\["));
    static MENTION: LazyLock<Regex> = LazyLock::new(|| pattern(r"(^|[^A-Za-z0-9_])@([A-Za-z0-9_])"));
    static CLOSING: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?ix) \b( clos(?:e[sd]?|ing) | fix(?:e[sd]|ing)? | resolv(?:e[sd]?|ing) | implement(?:s|ed|ing)? )
              ( [:\s]* $ | [:\s]+ (?:issues?\s+)? [*_\[(]* (?: [\w./-]*[\#!]\d | https?:// | [A-Z][A-Z0-9_]*-\d ) )",
        )
    });
    let text = TAG.replace_all(text, "&lt;$1");
    let text = PICTURE.replace_all(&text, "[");
    let text = MENTION.replace_all(&text, format!("${{1}}@{GAP}$2"));
    CLOSING.replace_all(&text, format!("${{1}}{GAP}$2")).into_owned()
}

/// Returns `text` on one line in a span of code that nothing in it can close.
pub(super) fn code(text: &str) -> String {
    // Several spaces may be part of a command.
    let line = text.trim().replace(char::is_whitespace, " ");
    let fence = "`".repeat(longest_run(&line) + 1);
    // A space is taken off by Markdown; without it the signs would join.
    let pad = if line.starts_with('`') || line.ends_with('`') {
        " "
    } else {
        ""
    };
    format!("{fence}{pad}{line}{pad}{fence}")
}

/// Returns `text` in a code block that nothing in it can close.
pub(super) fn fenced(text: &str) -> String {
    let fence = "`".repeat(longest_run(text).max(2) + 1);
    format!("{fence}\n{}\n{fence}", text.trim_end())
}

fn longest_run(text: &str) -> usize {
    let runs = text.split(|character| character != '`');
    runs.map(str::len).max().unwrap_or(0)
}

#[expect(
    clippy::expect_used,
    reason = "the patterns are written above, and the tests use them all"
)]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this file")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_block_cannot_be_closed_from_inside() {
        assert_eq!(fenced("a\n```\nb"), "````\na\n```\nb\n````");
        assert_eq!(code("a ``b``\nc"), "```a ``b`` c```");
        assert_eq!(code("`a`"), "`` `a` ``");
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(harmless(text).replace(GAP, "~"), expected);
    }

    #[test]
    fn nobody_is_called() {
        check(
            "@all, cc (@acme/owners) and \\@bob",
            "@~all, cc (@~acme/owners) and \\@~bob",
        );
        check("mail bob@example.com at 5 @ noon", "mail bob@example.com at 5 @ noon");
        check(
            "`@pytest.fixture` and ``a ` @all``",
            "`@pytest.fixture` and ``a ` @all``",
        );
        check("`@all and ``@all", "`@~all and ``@~all");
        check("\\`@all\\`", "\\`@~all\\`");
        check("| `a | @all` |", "| `a | @~all` |");
    }

    #[test]
    fn no_bot_is_commanded() {
        check(
            "/merge now\n> /retest\nsee /etc/passwd",
            "\\/merge now\n> \\/retest\nsee /etc/passwd",
        );
        check("@dependabot merge", "@~dependabot merge");
    }

    #[test]
    fn nothing_is_closed_but_references_stay() {
        check("Fixes #7, see #8", "Fixes~ #7, see #8");
        check("closes: acme/widgets#7", "closes~: acme/widgets#7");
        check(
            "Resolved https://forge.example/a/b/issues/7",
            "Resolved~ https://forge.example/a/b/issues/7",
        );
        check("it fixes\n#7", "it fixes~\n#7");
        check(
            "Fixed the prefix of `#7`, closed 3 files",
            "Fixed the prefix of `#7`, closed 3 files",
        );
    }

    #[test]
    fn nothing_is_hidden_or_loaded() {
        check("<!-- <b>x</b> a < b", "&lt;!-- &lt;b>x&lt;/b> a < b");
        check("Vec<String> and `Vec<String>`", "Vec&lt;String> and `Vec<String>`");
        check("![x](https://evil.example/?key)", "[x](https://evil.example/?key)");
        check("~~~~\n<!-- @all", "~~~~\n<!-- @all\n~~~~");
        check("```\n~~~\n@all", "```\n~~~\n@all\n```");
        check("```a`b\n@all", "```a`b\n@~all");
        check("    ```\n@all", "```\n@all\n```");
        check("x\n    ```\n@all", "x\n    ```\n@~all");
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(harmless_line(" Reading <b>\nand more", 100), "Reading &lt;b>");
        assert_eq!(harmless_line("日本語です", 3), "日本語…");
    }
}
