//! Finds configured values that a text breaks into pieces: wrapped at a column, continued by quotes
//! and backslashes, quoted line by line.
//!
//! The search runs on a view of the text without the characters that stand between pieces, so its
//! time is linear as well. Only broken values count here; the rest is found in the text itself.

use std::ops::Range;

use aho_corasick::AhoCorasick;

use super::{automaton, join};

/// Shortest value: fewer characters may come together by chance across the words or cells of a
/// text.
const SHORTEST: usize = 12;

/// Finds broken values.
pub(super) struct Wrapped {
    values: AhoCorasick,
}

/// A text without breaks.
#[derive(Default)]
struct View {
    text: Vec<u8>,
    /// Offset of each piece: in the view and in the whole text.
    pieces: Vec<(usize, usize)>,
}

impl Wrapped {
    /// Prepares the search for `spellings` in pieces. Short ones are left out.
    pub(super) fn new(spellings: &[String]) -> Self {
        let mut values: Vec<Vec<u8>> = spellings.iter().map(|value| View::of(value).text).collect();
        values.retain(|value| value.len() >= SHORTEST);
        values.sort_unstable();
        values.dedup();
        Self {
            values: automaton(&values, false),
        }
    }

    /// Returns the ranges of values in pieces, in order.
    pub(super) fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        if self.values.patterns_len() == 0 {
            return ranges;
        }
        let view = View::of(text);
        for found in self.values.find_overlapping_iter(&view.text) {
            let range = view.place(found.start())..view.place(found.end() - 1) + 1;
            if range.len() > found.len() {
                join(&mut ranges, range);
            }
        }
        ranges
    }
}

impl View {
    fn of(text: &str) -> Self {
        let mut view = Self::default();
        let bytes = text.as_bytes();
        let mut at = 0;
        let mut goes_on = false;
        while let Some(&byte) = bytes.get(at) {
            if let Some(length) = break_at(byte, bytes.get(at + 1)) {
                at += length;
                goes_on = false;
                continue;
            }
            if !goes_on {
                view.pieces.push((view.text.len(), at));
                goes_on = true;
            }
            view.text.push(byte);
            at += 1;
        }
        view
    }

    /// Returns the offset in the whole text of the byte at `at` in the view.
    fn place(&self, at: usize) -> usize {
        let piece = self.pieces.partition_point(|(here, _)| *here <= at).saturating_sub(1);
        self.pieces.get(piece).map_or(at, |(here, there)| there + (at - here))
    }
}

/// Returns the length of the break that begins with `byte`, if one does: white space, also as an
/// escape, and what programs, diffs and mails put between the pieces of a long text.
fn break_at(byte: u8, next: Option<&u8>) -> Option<usize> {
    match (byte, next) {
        (b'\\', Some(b'n' | b'r' | b't')) => Some(2),
        (b'"' | b'\'' | b'`' | b'\\' | b'+' | b'>' | b'#' | b'|' | b'*' | b',', _) => Some(1),
        _ => byte.is_ascii_whitespace().then_some(1),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine;

    use crate::secret::Redactor;

    const SECRET: &str = "correct-horse+battery/staple-2026";

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let redactor = Redactor::new(&[SECRET.into(), "tiny-one".into()]);
        assert_eq!(redactor.clean(text).as_str(), expected);
    }

    #[test]
    fn a_value_in_pieces_is_found_however_it_was_broken() {
        for text in [
            "correct-horse+\nbattery/staple-2026",
            "correct-horse+\r\n    battery/st\r\n    aple-2026",
            "correct-\\\nhorse+battery/staple-2026",
            "correct-horse+\" +\n  \"battery/staple-2026",
            "correct-horse+', 'battery/staple-2026",
            "correct-horse+\\nbattery/staple-2026",
            "correct-horse+\n> battery/\n> staple-2026",
            "correct-horse+\n+battery/\n+staple-2026",
            "correct-horse+\n# battery/staple-2026",
            "c o r r e c t - h o r s e + b a t t e r y / s t a p l e - 2 0 2 6",
        ] {
            check(&format!("key: \"{text}\"; end"), "key: \"[redacted]\"; end");
        }
    }

    #[test]
    fn base64_wrapped_at_any_column_is_found() {
        let data = format!("{}{SECRET}{}", "before ".repeat(8), " after".repeat(8));
        let encoded = base64::engine::general_purpose::STANDARD.encode(data);
        for column in [1, 7, 60, 64, 76] {
            let lines: Vec<&str> = encoded
                .as_bytes()
                .chunks(column)
                .map(|line| std::str::from_utf8(line).unwrap())
                .collect();
            let clean = Redactor::new(&[SECRET.into()]).clean(&lines.join("\n")).into_string();
            assert!(clean.contains("[redacted]"), "at {column}: {clean}");
            let left: String = clean.replace("[redacted]", "").split_whitespace().collect();
            assert!(left.len() < encoded.len() - 40, "at {column}: {clean}");
        }
    }

    #[test]
    fn what_is_not_the_value_and_short_values_in_pieces_stay() {
        for text in [
            "tiny-\none",
            "correct horse battery staple",
            "correct-horse+\nbattery",
            "",
        ] {
            check(text, text);
        }
    }
}
