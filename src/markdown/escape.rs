//! Escapes plain text as Markdown, so that every page shows it as it is and no forge acts on it.
//!
//! Characters with a meaning in Markdown get a backslash. References that forges look for in the
//! rendered page (a mention, an item's number, a label) are broken by a zero-width character.
//! Addresses, commit ids and amounts with a dollar sign become code spans instead: forges leave
//! code alone, and such words are there to be copied.

use super::code::code;

/// A zero-width space: invisible, and no forge's pattern matches across it.
pub(super) const GAP: char = '\u{200b}';

/// Beginning of the redactor's placeholder, which stays readable in the source.
const REDACTED: &str = "[redacted";

/// Names of standards that look like an issue tracker's project key.
const STANDARDS: [&str; 8] = ["UTF", "SHA", "ISO", "RFC", "MD", "IPV", "BASE", "HTTP"];

/// Returns one line of text as Markdown. `at_start` is true at the beginning of a line.
pub(super) fn escaped(text: &str, at_start: bool) -> String {
    let mut writing = Writing {
        text,
        out: String::with_capacity(text.len() + text.len() / 8),
        at_start,
    };
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let class = Class::of(first);
        let rest = &text[at..];
        let end = at + rest.find(|letter| Class::of(letter) != class).unwrap_or(rest.len());
        match class {
            Class::Space if writing.out.ends_with(' ') => {}
            Class::Space => writing.out.push(' '),
            // Japanese text may contain an address without spaces around it, so runs of ASCII are
            // examined, not words.
            Class::Other => {
                writing.out.push_str(&text[at..end]);
                writing.at_start = false;
            }
            Class::Ascii => writing.ascii(at, end),
        }
        at = end;
    }
    writing.out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Space,
    Ascii,
    Other,
}

impl Class {
    fn of(letter: char) -> Self {
        match letter {
            _ if letter.is_ascii_whitespace() => Self::Space,
            _ if letter.is_ascii() => Self::Ascii,
            _ => Self::Other,
        }
    }
}

/// Appends a code span, separated from a code span directly before it.
pub(super) fn push_code(out: &mut String, text: &str) {
    if out.ends_with('`') {
        out.push(GAP);
    }
    out.push_str(&code(text));
}

struct Writing<'text> {
    text: &'text str,
    out: String,
    /// True while the line is empty.
    at_start: bool,
}

/// The way in which a character is escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Care {
    /// Written as it is.
    None,
    /// Preceded by a backslash.
    Escape,
    /// Followed by a [`GAP`].
    Break,
    Both,
    /// Replaced by an HTML entity.
    Entity(&'static str),
}

impl Writing<'_> {
    /// Writes a run of ASCII without whitespace.
    fn ascii(&mut self, start: usize, end: usize) {
        let run = &self.text[start..end];
        let bare = run.trim_start_matches(['(', '[', '{', '"', '\'', '<', ',']);
        let core = bare.trim_end_matches(|letter: char| ".,;:!?)]}>\"'".contains(letter));
        if !is_for_machines(core) {
            return self.plain(start, end);
        }
        let before = end - bare.len();
        self.plain(start, before);
        // A `|` would end a table cell, even in code.
        for (number, part) in core.split('|').enumerate() {
            if number > 0 {
                self.out.push_str("\\|");
            }
            if !part.is_empty() {
                push_code(&mut self.out, part);
            }
        }
        self.at_start = false;
        self.plain(before + core.len(), end);
    }

    fn plain(&mut self, start: usize, end: usize) {
        let digits = self.text[start..end].bytes().take_while(u8::is_ascii_digit).count();
        let number_ends = (self.at_start && digits > 0).then_some(start + digits);
        for at in start..end {
            let sign = char::from(self.text.as_bytes()[at]);
            let care = if number_ends == Some(at) && matches!(sign, '.' | ')') {
                Care::Escape
            } else {
                self.care(at, sign, self.at_start && at == start)
            };
            match care {
                Care::None => self.out.push(sign),
                Care::Escape => self.out.extend(['\\', sign]),
                Care::Break => self.out.extend([sign, GAP]),
                Care::Both => self.out.extend(['\\', sign, GAP]),
                Care::Entity(entity) => self.out.push_str(entity),
            }
        }
        self.at_start &= start == end;
    }

    /// Decides how the character at `at` is escaped.
    fn care(&self, at: usize, sign: char, is_first: bool) -> Care {
        let before = self.text[..at].chars().next_back();
        let next = self.text[at + 1..]
            .chars()
            .next()
            .filter(|next| !next.is_ascii_whitespace());
        let next_is = |wanted: fn(char) -> bool| next.is_some_and(wanted);
        let is_number = next_is(|next| next.is_ascii_digit());
        let joins = |neighbour: Option<char>| neighbour.is_some_and(|letter| letter.is_ascii_alphanumeric());
        match sign {
            '~' if next.is_some() => Care::Both,
            '\\' | '`' | '*' | '|' | '$' | '~' => Care::Escape,
            '_' if !(joins(before) && joins(next)) => Care::Escape,
            '[' if !self.text[at..].starts_with(REDACTED) => Care::Escape,
            ']' if next_is(|next| "([:{".contains(next)) => Care::Escape,
            '!' if next == Some('[') => Care::Escape,
            '{' if next_is(|next| !next.is_ascii_alphanumeric()) => Care::Escape,
            '#' if is_first && is_number => Care::Both,
            '#' | '>' | '+' | '=' | ':' | ';' | '/' | '-' if is_first => Care::Escape,
            '#' | '!' | '&' if is_number => Care::Break,
            '@' if next.is_some() => Care::Break,
            '%' | '^' if next_is(|next| next.is_ascii_alphanumeric() || next == '"') => Care::Break,
            '-' if is_number && is_key(&self.text[..at]) => Care::Break,
            '<' if next.is_some() => Care::Entity("&lt;"),
            '&' if next_is(|next| next == '#' || next.is_ascii_alphabetic()) => Care::Entity("&amp;"),
            _ => Care::None,
        }
    }
}

/// Returns true if `before`, in front of `-` and a number, ends with an issue tracker's project key
/// (`ABC-12`, `GH-7`).
fn is_key(before: &str) -> bool {
    let other = before.trim_end_matches(|letter: char| letter.is_ascii_alphanumeric() || letter == '_');
    let word = &before[other.len()..];
    let key = word.to_ascii_uppercase();
    let is_capital = key == word || ["GH", "GL"].contains(&key.as_str());
    // Without a word before the `-`, the key may be in emphasis.
    key.is_empty()
        || (is_capital
            && key.starts_with(|first: char| first.is_ascii_alphabetic())
            && !STANDARDS.contains(&key.as_str()))
}

/// Returns true if forges would turn the word into a link, a commit or a formula; people copy such
/// words rather than read them.
fn is_for_machines(word: &str) -> bool {
    let lower = word.to_ascii_lowercase();
    lower.contains("://")
        || lower.contains("www.")
        // The full stop behind it is not part of the word, and makes a link of it all the same.
        || lower.ends_with("www")
        || lower.contains("mailto:")
        || lower.contains("xmpp:")
        || word.contains('$')
        || has_address_of_mail(word)
        || word
            .split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
            .any(is_commit)
}

/// Returns true for `acme/widgets@4f2a1c9`, a commit, and `bob@example.org`: forges link both.
fn has_address_of_mail(word: &str) -> bool {
    word.match_indices('@').any(|(at, _)| {
        let before = word[..at].chars().next_back();
        before.is_some_and(|before| before.is_ascii_alphanumeric() || "._+-".contains(before)) && at + 1 < word.len()
    })
}

/// Returns true if the word looks like a commit id; words like `defaced` and numbers rarely are
/// one.
fn is_commit(word: &str) -> bool {
    let is_hex = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (7..=40).contains(&word.len())
        && word.bytes().all(is_hex)
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(escaped(text, true).replace(GAP, "¦"), expected, "{text}");
    }

    #[test]
    fn ordinary_words_stay_as_they_are() {
        for text in [
            "It fails, or so they say: a < b && c > d (50 % of the time).",
            "snake_case, UTF-8 and SHA-256; 3.5 of 10 - or 1,000?",
            "日本語もそのまま。「はい」 می‌خواهم 🎉",
            "[redacted:github-token] was here",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn what_forges_look_for_is_broken() {
        check(
            "@all, (@acme/owners) and 日本@bob",
            "@¦all, (@¦acme/owners) and 日本@¦bob",
        );
        check("@_@all", "`@_@all`");
        check(
            "Fixes #7, acme/other#7, !7 and &1",
            "Fixes #¦7, acme/other#¦7, !¦7 and &¦1",
        );
        check("GH-7 JIRA-12 gh-3 a-3 𑨀GH-7", "GH-¦7 JIRA-¦12 gh-¦3 a-3 𑨀GH-¦7");
        check("%1 %\"a b\" ~bug ^alert#1", "%¦1 %¦\"a b\" \\~¦bug ^¦alert#¦1");
        check("*iteration:1 [vulnerability:1]", "\\*iteration:1 \\[vulnerability:1]");
    }

    #[test]
    fn what_is_copied_is_code() {
        check("see https://a.example/x?y#z.", "see `https://a.example/x?y#z`.");
        check("詳細はhttps://a.example/をご覧", "詳細は`https://a.example/`をご覧");
        check("(www.a.example) bob@a.example", "(`www.a.example`) `bob@a.example`");
        check("on the _www.", "on the `_www`.");
        check(
            "4f2a1c9 acme/w@4f2a1c9 defaced 1234567",
            "`4f2a1c9` `acme/w@4f2a1c9` defaced 1234567",
        );
        check("$HOME costs $5 or $x$", "`$HOME` costs `$5` or `$x$`");
        check("https://a.example/|b", "`https://a.example/`\\|`b`");
    }

    #[test]
    fn nothing_of_markdown_begins() {
        check("# a", "\\# a");
        check("1. a", "1\\. a");
        check("- a", "\\- a");
        check("/merge now", "\\/merge now");
        check("a /merge", "a /merge");
        check(
            "<b>x</b> &commat;all &#64;",
            "&lt;b>x&lt;/b> &amp;commat;all &amp;#¦64;",
        );
        check("![x](y) [^1] [[_TOC_]]", "\\!\\[x\\](y) \\[^¦1] \\[\\[\\_TOC\\_]]");
        check("`a` |b| *c* \\d", "\\`a\\` \\|b\\| \\*c\\* \\\\d");
    }
}
