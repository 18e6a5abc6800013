//! A message as it is compared with words: folded, and without what it only quotes.

use crate::markdown::fence::Fence;

/// Returns `text` in lower case, with full-width letters, digits and signs as their usual forms:
/// Japanese keyboards write `／ｃｏｄｅ` as readily as `/code`.
pub fn folded(text: &str) -> String {
    text.chars().map(narrow).flat_map(char::to_lowercase).collect()
}

/// Returns the usual form of a full-width sign.
fn narrow(sign: char) -> char {
    match sign {
        '\u{3000}' => ' ',
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(sign) - 0xfee0).unwrap_or(sign),
        _ => sign,
    }
}

/// Returns the lines of a message that its sender said, with their numbers: those of quotations and
/// of code in fences are somebody else's words.
pub fn own_lines(text: &str) -> Vec<(usize, &str)> {
    let mut open: Option<Fence<'_>> = None;
    let mut own = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(fence) = open {
            if fence.is_closed_by(line) {
                open = None;
            }
            continue;
        }
        open = Fence::opened_by(line);
        let folded = folded(line);
        let begins = |sign: &str| folded.trim_start().starts_with(sign);
        // Slack quotes all that follows three signs.
        if open.is_none() && begins(">>>") {
            break;
        }
        let is_quoted = begins(">");
        if open.is_none() && !is_quoted {
            own.push((number, line));
        }
    }
    own
}

/// Returns what the sender said, as it stands there.
pub fn own_text(text: &str) -> String {
    let lines = own_lines(text).into_iter().map(|(_, line)| line);
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns what the sender said, folded, without what stands between backticks.
pub fn own_words(text: &str) -> String {
    let lines = own_lines(text).into_iter().map(|(_, line)| without_code(line));
    folded(&lines.collect::<Vec<_>>().join("\n"))
}

/// Returns a line without its spans of code; a backtick without a second one is a sign like others.
fn without_code(line: &str) -> String {
    let parts: Vec<&str> = line.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return line.to_owned();
    }
    parts.into_iter().step_by(2).collect::<Vec<_>>().join(" ")
}

/// Tells whether a folded text holds a word. A word of Latin letters stands by itself; one with
/// other letters may stand within others, since Chinese and Japanese put no spaces between words.
/// A `*` at its end stands for any ending.
pub fn holds(text: &str, word: &str) -> bool {
    let (word, is_open) = word.strip_suffix('*').map_or((word, false), |word| (word, true));
    if word.is_empty() {
        return false;
    }
    if !word.is_ascii() {
        return text.contains(word);
    }
    let is_letter = |sign: Option<char>| sign.is_some_and(|sign| sign.is_ascii_alphanumeric() || sign == '_');
    text.match_indices(word).any(|(start, _)| {
        let before = text[..start].chars().next_back();
        let after = text[start + word.len()..].chars().next();
        !is_letter(before) && (is_open || !is_letter(after))
    })
}

/// Tells whether a text has Japanese letters, by which the program chooses its own few words.
pub fn is_japanese(text: &str) -> bool {
    text.chars()
        .any(|sign| matches!(sign, '\u{3040}'..='\u{30ff}' | '\u{ff66}'..='\u{ff9f}' | '\u{4e00}'..='\u{9fff}'))
}
