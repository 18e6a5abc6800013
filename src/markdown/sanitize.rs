//! Words of a model, fit to stand in a comment under the bot's name.
//!
//! A model repeats what strangers wrote. Printed as it is, that could call people and teams (`@all`), command other bots
//! (`/merge`, `@bot merge`), close issues when the request is merged (`Fixes #7`), hide what the program says below it
//! (`<!--`, an open code block) or load a picture from anywhere, with anything in its address. Here all of this loses its
//! effect and stays readable. Code is left as it is, so that it can be copied; in doubt it is not taken for code, and signs that other
//! readers of Markdown might take for the beginning of code are made into letters.
//! Does not judge what is said, and leaves plain references and links alone.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use super::fence::Fence;

/// No one sees it, and no pattern of a forge reads over it.
const GAP: char = '\u{200b}';

/// Returns Markdown that looks like `text` and does nothing.
pub fn harmless(text: &str) -> String {
    // A carriage return alone ends a line of Markdown as well.
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    let mut open: Option<Fence<'_>> = None;
    for line in text.trim().lines() {
        if let Some(fence) = open {
            let is_end = fence.is_closed_by(line);
            // Not every reader of Markdown takes signs with tabs around them for the end.
            lines.push(Cow::Borrowed(if is_end { line.trim() } else { line }));
            open = Some(fence).filter(|_| !is_end);
            continue;
        }
        open = Fence::opened_by(line);
        lines.push(match open {
            Some(_) => Cow::Borrowed(line),
            None => Cow::Owned(prose(line)),
        });
    }
    if let Some(fence) = open {
        lines.push(Cow::Borrowed(fence.signs()));
    }
    lines.join("\n")
}

/// Returns the first line of `text`, at most `most` characters of it, made harmless. It is never taken for code that goes on.
pub fn harmless_line(text: &str, most: usize) -> String {
    let line = text.trim().split(['\n', '\r']).next().unwrap_or_default().trim_end();
    let end = line.char_indices().nth(most).map(|(end, _)| end);
    prose(&end.map_or_else(|| line.to_owned(), |end| format!("{}…", &line[..end])))
}

/// Returns an account's name as it may stand in a text; `None` where the forge does not tell it any more.
pub fn harmless_name(name: &str) -> Option<String> {
    const MOST: usize = 100;
    Some(harmless_line(name, MOST)).filter(|name| !name.is_empty())
}

/// Returns a line that is no part of a block of code.
fn prose(line: &str) -> String {
    static COMMAND: LazyLock<Regex> = LazyLock::new(|| pattern(r"^([\s>]*)(/[A-Za-z][\w-]*(?:\s|$))"));
    // In a list or a quote, or indented; fences of backticks are code spans that do not end, see below.
    static FENCE: LazyLock<Regex> = LazyLock::new(|| pattern(r"^((?:[\s>]|[-*+]\s|\d{1,9}[.)]\s)*)(~{3})"));
    let line = COMMAND.replace(line, r"${1}\${2}");
    let line = FENCE.replace(&line, r"${1}\${2}");
    let is_clear = has_clear_spans(&line);
    let mut safe = String::with_capacity(line.len());
    for piece in spans(&line) {
        match piece {
            Piece::Span(span) if is_clear => {
                // A forge's address goes on to the next space, and would take the first sign of the code with it.
                let word = safe.rsplit(char::is_whitespace).next().unwrap_or_default();
                if word.contains("www.") || word.contains("://") {
                    safe.push(' ');
                }
                safe.push_str(span);
            }
            Piece::Span(span) => safe.push_str(&disarmed(span)),
            Piece::Text(text) => safe.push_str(&plain(text)),
            // Somewhere further down there may be its other end.
            Piece::Loose(signs) => signs.chars().for_each(|sign| safe.extend(['\\', sign])),
        }
    }
    safe
}

/// Tells whether every reader of Markdown finds the spans of `line` where [`spans`] does. What stands in an address (of mail, too: a
/// backtick may be a part of one), its definition or a formula is no code to them, and a table tears its cells apart before it looks for code in them; the end of one span is then the
/// beginning of the next.
fn has_clear_spans(line: &str) -> bool {
    spans(line).all(|piece| match piece {
        Piece::Span(span) => !span.contains('|'),
        Piece::Text(text) => {
            !may_begin_address(text)
                && !text.contains(['|', '$'])
                && !text.contains("]:")
                && matches!(without_odd_links(text), Cow::Borrowed(_))
        }
        Piece::Loose(_) => true,
    })
}

/// Tells whether there is a `<` that [`plain`] leaves and that something other than a space may follow.
fn may_begin_address(text: &str) -> bool {
    let harmless = |next: char| next.is_ascii_alphabetic() || next.is_whitespace() || "/!?".contains(next);
    text.match_indices('<')
        .any(|(at, _)| !text[at + 1..].starts_with(harmless))
}

/// A piece of a line.
enum Piece<'line> {
    /// With the signs around it.
    Span(&'line str),
    Text(&'line str),
    /// Backticks that open no span on this line.
    Loose(&'line str),
}

/// Takes a line apart into spans of code and what is between them.
fn spans(line: &str) -> impl Iterator<Item = Piece<'_>> {
    let mut rest = line;
    std::iter::from_fn(move || {
        let (piece, after) = first_piece(rest)?;
        rest = after;
        Some(piece)
    })
}

fn first_piece(line: &str) -> Option<(Piece<'_>, &str)> {
    if line.is_empty() {
        return None;
    }
    let start = line.find('`').unwrap_or(line.len());
    let is_escaped = line[..start].chars().rev().take_while(|sign| *sign == '\\').count() % 2 == 1;
    if start > 0 {
        let end = if is_escaped { (start + 1).min(line.len()) } else { start };
        return Some((Piece::Text(&line[..end]), &line[end..]));
    }
    if let Some(end) = span(line) {
        return Some((Piece::Span(&line[..end]), &line[end..]));
    }
    let after = line.trim_start_matches('`');
    Some((Piece::Loose(&line[..line.len() - after.len()]), after))
}

/// Returns the length of the code span that `text` begins with, if its other end is on this line.
fn span(text: &str) -> Option<usize> {
    let rest = text.trim_start_matches('`');
    let mark = text.len() - rest.len();
    let mut from = 0;
    while let Some(start) = rest[from..].find('`').map(|start| from + start) {
        let after = rest[start..].trim_start_matches('`');
        let end = rest.len() - after.len();
        if end - start == mark {
            return Some(mark + end);
        }
        from = end;
    }
    None
}

/// Returns what is code to some and text to others: nobody sees a difference, and it does nothing in either case.
fn disarmed(span: &str) -> String {
    let mut safe = String::with_capacity(span.len());
    let mut letters = span.chars().peekable();
    while let Some(letter) = letters.next() {
        safe.push(letter);
        let begins_something = match (letter, letters.peek()) {
            ('<', Some(next)) => !next.is_whitespace(),
            ('!', Some('[')) | (']', Some('(' | '[' | ':')) | ('&', Some(_)) => true,
            _ => false,
        };
        if begins_something {
            safe.push(GAP);
        }
    }
    without_closings(&without_mentions(&safe))
}

fn plain(text: &str) -> String {
    static TAG: LazyLock<Regex> = LazyLock::new(|| pattern(r"<([A-Za-z/!?])"));
    // With one sign taken off, two would still be one.
    static PICTURE: LazyLock<Regex> = LazyLock::new(|| pattern(r"!+\["));
    // Written as a number or a name, a sign is a sign again on the page, where forges look for mentions.
    static ENTITY: LazyLock<Regex> = LazyLock::new(|| pattern(r"&(#|(?i:commat|num);)"));
    let text = ENTITY.replace_all(text, "&amp;$1");
    let text = TAG.replace_all(&text, "&lt;$1");
    let text = PICTURE.replace_all(&text, "[");
    let text = without_odd_links(&text);
    without_closings(&without_mentions(&text))
}

/// Breaks the words with which forges close items.
fn without_closings(text: &str) -> String {
    static CLOSING: LazyLock<Regex> = LazyLock::new(|| {
        pattern(
            r"(?ix) (\b|_)( clos(?:e[sd]?|ing) | fix(?:e[sd]|ing)? | resolv(?:e[sd]?|ing) | implement(?:s|ed|ing)? )
              ( [:\s]* $ | [:\s]+ (?:issues?\s+)? [*_\[(]* (?: [\w./-]*[\#!]\d | https?:// | [A-Z][A-Z0-9_]*-\d ) )",
        )
    });
    CLOSING.replace_all(text, format!("${{1}}${{2}}{GAP}$3")).into_owned()
}

/// Leaves links alone that have nothing but an address or a label, and makes text of others: of what an address, a title or a label may
/// hold besides, readers of Markdown think differently. Each bracket is looked at, also one that ends the label of another link.
fn without_odd_links(text: &str) -> Cow<'_, str> {
    static TARGET: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:\([^\s()\[\]<>`\\]*\)|\[[^\[\]`\\]*\])"));
    let is_odd = |(at, _): &(usize, &str)| {
        let after = &text[at + 1..];
        after.starts_with(['(', '[']) && !TARGET.is_match(after)
    };
    let mut safe = String::new();
    let mut from = 0;
    for (at, _) in text.match_indices(']').filter(is_odd) {
        safe.push_str(&text[from..=at]);
        safe.push('\\');
        from = at + 1;
    }
    if from == 0 {
        return Cow::Borrowed(text);
    }
    safe.push_str(&text[from..]);
    Cow::Owned(safe)
}

/// A pattern would not do: each match takes the sign behind the `@` along, which may stand before the next one (`@_@all`).
fn without_mentions(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    let mut before = None;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        safe.push(letter);
        let is_in_word = before.is_some_and(|before: char| before.is_ascii_alphanumeric());
        // Behind a backslash, or written as a name, a sign is the sign on the page.
        let calls = |next: &char| next.is_ascii_alphanumeric() || "_\\&".contains(*next);
        if letter == '@' && !is_in_word && letters.peek().is_some_and(calls) {
            safe.push(GAP);
        }
        before = Some(letter);
    }
    safe
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
        check("_@all_ and **@bob**", "_@~all_ and **@~bob**");
        check("__@_@all", "__@~_@~all");
        check("@\\_all @&lowbar;all", "@~\\_all @~&lowbar;all");
        check("mail bob@example.com at 5 @ noon", "mail bob@example.com at 5 @ noon");
        check(
            "`@pytest.fixture` and ``a ` @all``",
            "`@pytest.fixture` and ``a ` @all``",
        );
        check("`@all and ``@all", r"\`@~all and \`\`@~all");
        // The one that opens nothing on its line opens nothing on the next.
        check("`a\nb` @all `", "\\`a\nb` @all `");
        check("`a\nb` @all", "\\`a\nb\\` @~all");
        check("&#64;all &commat;all", "&amp;#64;all &amp;commat;all");
        check("\\`@all\\`", "\\`@~all\\`");
        check("| `a | @all` | `@all` |", "| `a | @~all` | `@~all` |");
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
        check("_Fixes #7_", "_Fixes~ #7_");
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
        check("```a`b\n@all", "\\`\\`\\`a\\`b\n@~all");
        check("    ```\n@all", "```\n@all\n```");
        check("x\n    ```\n@all", "x\n    \\`\\`\\`\n@~all");
    }

    #[test]
    fn what_only_looks_like_code_is_none() {
        // The block ends with the item of the list that it belongs to.
        check("- a\n  ```\n@all", "- a\n  \\`\\`\\`\n@~all");
        check("1. ~~~\n@all", "1. \\~~~\n@~all");
        check("> ~~~\n@all", "> \\~~~\n@~all");
        check("[x](a`b) @all `", "[x]\\(a`b) @~all `");
        check("see https://a.example/`x @all `", "see https://a.example/ `x @all `");
        check("[x](a (b) `@all`", r"[x]\(a (b) `@~all`");
        check("[x](/a) and [y][z]", "[x](/a) and [y][z]");
        check("[x][y](`a) ![x](`b)", r"[x][y]\(`a) !~[x]~(`b)");
        check("[x]: `a and `@all`", "[x]: `a and `@~all\\`");
        check(
            "a<`@all>` Fixes <`Vec<T> &#64; fixes #7`",
            "a<`@~all>` Fixes <`Vec<~T> &~#64; fixes~ #7`",
        );
        check("see [x] and `@all`", "see [x] and `@all`");
        check("~~~\r~~~\r@all", "~~~\n~~~\n@~all");
        check("~~~\na\n  ~~~ \t\n@all", "~~~\na\n~~~\n@~all");
        check("```\n```\u{a0}\n@all", "```\n```\u{a0}\n@all\n```");
    }

    #[test]
    fn nothing_is_loaded_however_often_it_is_asked() {
        check("!![x](https://evil.example/)", "[x](https://evil.example/)");
    }

    #[test]
    fn a_line_is_one_line() {
        assert_eq!(harmless_line("```sh", 100), r"\`\`\`sh");
        assert_eq!(harmless_line("~~~\rx", 100), r"\~~~");
        assert_eq!(harmless_line(" Reading <b>\nand more", 100), "Reading &lt;b>");
        assert_eq!(harmless_line("日本語です", 3), "日本語…");
    }
}
