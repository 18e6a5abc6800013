//! Removes secrets from text.
//!
//! Everything that a person, a model, a forge or a log file gets passes through the one
//! [`Redactor`]; [`Clean`] is the proof that it did. There is no other way to make one.
//!
//! Guarantees: no configured value is left in clean text, in any of its usual spellings, nor in
//! pieces if it has twelve characters; cleaning twice is cleaning once; the time is linear in the
//! text. Secrets that are not configured are recognised by their form, or by their name if they
//! look random. Nothing else is guessed: a tool that writes its password backwards shows it.

mod assignment;
mod cued;
mod encoded;
mod format;
mod leak;
pub mod personal;
mod spelling;
mod wrapped;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use secrecy::ExposeSecret;
use secrecy::SecretString;
use serde::Serialize;

use assignment::Assignments;
use format::Formats;
pub use leak::Leak;
use wrapped::Wrapped;

/// Text without secrets. Only [`Redactor::clean`] makes one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Clean(String);

impl Clean {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_string(self) -> String {
        self.0
    }
}

impl fmt::Display for Clean {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// Finds secrets in text and replaces each by a mark: `[redacted]`, or `[redacted:github-token]`
/// where the kind is known.
pub struct Redactor {
    configured: AhoCorasick,
    wrapped: Wrapped,
    formats: Formats,
    assignments: Assignments,
    mark: Mark,
}

/// The replacement of a secret.
enum Mark {
    Words,
    /// A character that is in no configured value. It is used if one of these looks like a part of
    /// the words above, and would be found in them.
    Sign(char),
}

struct Found {
    range: Range<usize>,
    kind: Option<&'static str>,
}

impl Redactor {
    /// Returns a redactor that knows the configured `secrets` besides the well-known token formats.
    ///
    /// Values of less than six characters are not searched: they would tear holes into ordinary
    /// words.
    pub fn new(secrets: &[SecretString]) -> Self {
        let spellings = spelling::of_all(secrets.iter().map(ExposeSecret::expose_secret));
        let mark = Mark::that_is_in_none_of(&spellings);
        let configured = automaton(&spellings, false);
        Self {
            configured,
            wrapped: Wrapped::new(&spellings),
            formats: Formats::new(),
            assignments: Assignments::new(),
            mark,
        }
    }

    /// Returns `text` with every secret replaced by a mark.
    pub fn clean(&self, text: &str) -> Clean {
        self.cleaned(text, |clean, found, _| self.mark.write(clean, found.kind))
    }

    /// Returns `text` like [`Self::clean`], with a mark on each line that a secret is on, so that
    /// all lines keep their numbers. Of a few lines of a text cleaned alone, the part of a key
    /// would be recognised by nobody.
    pub fn clean_in_lines(&self, text: &str) -> Clean {
        self.cleaned(text, |clean, found, secret| {
            self.mark.write(clean, found.kind);
            for line_break in secret.matches('\n') {
                clean.push_str(line_break);
                self.mark.write(clean, found.kind);
            }
        })
    }

    /// Has `write` put something else in the place of each secret.
    fn cleaned(&self, text: &str, write: impl Fn(&mut String, &Found, &str)) -> Clean {
        let mut text = Cow::Borrowed(text);
        // A mark ends a word, and so may uncover a token that was not one before. Each round leaves
        // less unmarked text.
        loop {
            let found = self.find(&text);
            if found.is_empty() {
                return Clean(text.into_owned());
            }
            text = Cow::Owned(replaced(&text, &found, &write));
        }
    }

    /// Returns the marks in `text`, in order.
    pub fn marks<'text>(&self, text: &'text str) -> Vec<&'text str> {
        self.mark.all_in(text)
    }

    /// Returns what is to be replaced, in order. Overlapping ranges become one, so that no half of
    /// a secret stays behind.
    fn find(&self, text: &str) -> Vec<Found> {
        let mut configured = Vec::new();
        for found in self.configured.find_overlapping_iter(text) {
            join(&mut configured, found.range());
        }
        let configured = configured.into_iter().chain(self.wrapped.find(text));
        let configured = configured.map(|range| Found { range, kind: None });
        let assigned = self.assignments.find(text).map(|range| (assignment::KIND, range));
        let formats = self.formats.find(text).chain(assigned).map(|(kind, range)| Found {
            range,
            kind: Some(kind),
        });
        let mut all: Vec<Found> = configured
            .chain(formats.filter(|found| !self.mark.is_in(&text[found.range.clone()])))
            .collect();
        all.sort_by_key(|found| (found.range.start, std::cmp::Reverse(found.range.end)));
        all.dedup_by(|next, previous| {
            let overlaps = next.range.start < previous.range.end;
            if overlaps {
                previous.range.end = previous.range.end.max(next.range.end);
            }
            overlaps
        });
        all
    }
}

fn replaced(text: &str, all: &[Found], write: impl Fn(&mut String, &Found, &str)) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut end = 0;
    for found in all {
        clean.push_str(&text[end..found.range.start]);
        write(&mut clean, found, &text[found.range.clone()]);
        end = found.range.end;
    }
    clean.push_str(&text[end..]);
    clean
}

/// Returns an automaton that finds `words`. It is not the kind that searches fastest: building that
/// takes a quarter of the time that a run with nothing to do has, and texts are short.
#[expect(clippy::expect_used, reason = "fails only from 2 GiB of words on")]
fn automaton<W: AsRef<[u8]>>(words: &[W], ignores_case: bool) -> AhoCorasick {
    AhoCorasick::builder()
        .kind(Some(AhoCorasickKind::ContiguousNFA))
        .ascii_case_insensitive(ignores_case)
        .build(words)
        .expect("the words fit an automaton")
}

/// Adds a range that ends behind all earlier ones, joined with those it overlaps: a text that is
/// nothing but one value, shifted again and again, needs one entry instead of one for each shift.
fn join(ranges: &mut Vec<Range<usize>>, mut new: Range<usize>) {
    while let Some(last) = ranges.pop_if(|last| last.end > new.start) {
        new.start = new.start.min(last.start);
    }
    ranges.push(new);
}

impl Mark {
    fn that_is_in_none_of(spellings: &[String]) -> Self {
        // A value can only touch a mark with a bracket or lie inside one.
        let is_like_a_mark = |value: &String| {
            value.contains(['[', ']'])
                || format::KINDS
                    .iter()
                    .chain([&assignment::KIND])
                    .any(|kind| format!("redacted:{kind}").contains(value.as_str()))
        };
        if !spellings.iter().any(is_like_a_mark) {
            return Self::Words;
        }
        let is_free = |sign: &char| !spellings.iter().any(|value| value.contains(*sign));
        Self::Sign(('\u{2588}'..=char::MAX).find(is_free).unwrap_or('\u{2588}'))
    }

    fn write(&self, text: &mut String, kind: Option<&str>) {
        match (self, kind) {
            (Self::Sign(sign), _) => text.extend([sign; 3]),
            (Self::Words, None) => text.push_str("[redacted]"),
            (Self::Words, Some(kind)) => {
                text.push_str("[redacted:");
                text.push_str(kind);
                text.push(']');
            }
        }
    }

    fn all_in<'text>(&self, text: &'text str) -> Vec<&'text str> {
        match self {
            Self::Words => {
                let begun = text.match_indices("[redacted").map(|(at, _)| &text[at..]);
                let marks = begun.filter_map(|rest| {
                    let kind = rest["[redacted".len()..].find(|sign: char| !matches!(sign, ':' | '-' | 'a'..='z'))?;
                    let end = "[redacted".len() + kind;
                    rest[end..].starts_with(']').then(|| &rest[..=end])
                });
                marks.collect()
            }
            Self::Sign(sign) => {
                let mark: String = [sign; 3].into_iter().collect();
                text.matches(mark.as_str()).collect()
            }
        }
    }

    /// Tells whether `text` holds a mark already. Only a format can span a mark; a configured value
    /// cannot.
    fn is_in(&self, text: &str) -> bool {
        match self {
            Self::Words => text.contains("[redacted"),
            Self::Sign(sign) => text.contains(*sign),
        }
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Redactor")
            .field("spellings", &self.configured.patterns_len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base64::Engine;
    use proptest::prelude::*;

    fn redactor(secrets: &[&str]) -> Redactor {
        Redactor::new(&secrets.iter().map(|&secret| secret.into()).collect::<Vec<_>>())
    }

    #[track_caller]
    fn check(secrets: &[&str], text: &str, expected: &str) {
        assert_eq!(redactor(secrets).clean(text).as_str(), expected);
    }

    #[test]
    fn a_configured_value_is_found_in_all_its_spellings() {
        let secret = "p\"ss wörd/1";
        check(&[secret], "it is p\"ss wörd/1.", "it is [redacted].");
        check(&[secret], r#"{"a":"p\"ss wörd/1"}"#, r#"{"a":"[redacted]"}"#);
        check(&[secret], "?q=p%22ss%20w%C3%B6rd%2F1&b", "?q=[redacted]&b");
        check(&[secret], "?q=p%22ss+w%c3%b6rd%2f1&b", "?q=[redacted]&b");
        check(&[secret], "cCJzcyB3w7ZyZC8x", "[redacted]");
        check(
            &[secret],
            "0x70227373207 70227373ff 702273732077c3b672642f31",
            "0x70227373207 70227373ff [redacted]",
        );
        check(&[secret], "702273732077C3B672642F31", "[redacted]");
    }

    #[test]
    fn a_configured_value_is_found_as_libraries_write_it_in_json_and_html() {
        for spelled in [
            r"p\u0026s's\u003cö+/1",
            r"p&s's<\u00f6+/1",
            r"p&s's<\u00f6+\/1",
            r"p&s's<ö+\/1",
            r"p\u0026s\u0027s\u003cö+/1",
            r"p\u0026s\u0027s\u003C\u00F6\u002B/1",
            "p&amp;s's&lt;ö+/1",
            "p&amp;s&#39;s&lt;ö+/1",
            "p&amp;s&#x27;s&lt;ö+/1",
        ] {
            check(&["p&s's<ö+/1"], &format!("it is {spelled}."), "it is [redacted].");
        }
    }

    #[test]
    fn a_configured_value_inside_of_longer_base64_does_not_survive() {
        let secret = "correct horse battery";
        for user in ["", "a", "ab", "abc"] {
            let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{user}{secret}!"));
            let clean = redactor(&[secret]).clean(&encoded).into_string();
            assert!(clean.contains("[redacted]"), "{encoded} became {clean}");
            assert!(clean.len() <= "[redacted]".len() + 10, "{clean}");
        }
    }

    #[test]
    fn short_values_are_left_alone() {
        check(&["12345", ""], "port 12345", "port 12345");
    }

    #[test]
    fn overlapping_values_leave_no_half_behind() {
        check(&["abcdefgh", "efghijkl"], "x abcdefghijkl y", "x [redacted] y");
        check(&["hidden", "hidden-and-more"], "hidden-and-more", "[redacted]");
    }

    #[test]
    fn a_value_that_looks_like_a_mark_is_hidden_behind_a_sign() {
        check(&["redacted"], "redacted: redacted", "███: ███");
        check(&["t]aaaa"], "t]aaaa", "███");
    }

    #[test]
    fn marks_are_told_from_words_that_are_like_them() {
        let text = "a [redacted] b [redacted:github-token] [redacted by hand] [redacted";
        assert_eq!(
            Redactor::default().marks(text),
            ["[redacted]", "[redacted:github-token]"]
        );
        assert_eq!(redactor(&["redacted"]).marks("a ███ b █ [redacted]"), ["███"]);
    }

    #[test]
    fn a_line_of_a_configured_key_is_found_alone() {
        check(
            &["first line of the long key\nsecond line of the long key"],
            "> second line of the long key",
            "> [redacted]",
        );
    }

    #[test]
    fn lines_keep_their_numbers_where_that_is_wanted() {
        let redactor = redactor(&["correct-horse-battery"]);
        let text = "a = 1\nb = \"correct-\" \\\n  \"horse-battery\"\nc = 2\n";
        let clean = redactor.clean_in_lines(text);
        assert_eq!(clean.as_str(), "a = 1\nb = \"[redacted]\n[redacted]\"\nc = 2\n");
        assert_eq!(redactor.clean_in_lines(clean.as_str()), clean);
        assert_eq!(redactor.clean(text).as_str(), "a = 1\nb = \"[redacted]\"\nc = 2\n");
    }

    #[test]
    fn the_debug_form_shows_no_value() {
        let shown = format!("{:?}", redactor(&["hunter2hunter2"]));
        assert!(!shown.contains("hunter"), "{shown}");
    }

    #[test]
    fn the_time_is_linear_in_the_text_even_if_the_text_is_hostile() {
        let redactor = redactor(&["hunter2hunter2", "aaaaaa"]);
        for line in [
            "ordinary output 3f786850e387550fdab836ed7e6dc881de23001b -----BEGIN PRIVATE KEY-----\n",
            "eyJ-AKIAIOSFODNN7EXAMPLE-",
            "a: ghp_0123456789abcdefghij -----BEGIN PRIVATE KEY-----\n",
            "-----BEGIN PRIVATE KEY-----\n> 1: a.pem-2-",
            "-----BEGIN PRIVATE KEY-----0123456789abcdef0123456789abcdef01234567 a/b.pem:2:",
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n1: x -----END PRIVATE KEY-----",
            "http://u:p@",
            "a",
            "hunter2 ",
            "a a",
            "token=\"token='token:--token ",
            "SG.aaaaaaaaaaaaaaaaaaaaaa.",
        ] {
            let text = line.repeat((1 << 18) / line.len());
            let start = std::time::Instant::now();
            redactor.clean(&text);
            // A second or two on a busy machine; in quadratic time these are 2^36 steps, which is
            // minutes.
            assert!(
                start.elapsed() < std::time::Duration::from_mins(1),
                "{line}: {:?}",
                start.elapsed()
            );
        }
    }

    proptest! {
        // Each case makes a redactor, which is slow without optimisation.
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn no_configured_value_is_left_and_cleaning_twice_is_cleaning_once(
            secrets in proptest::collection::vec(r#"[ab\[\]\\"/ =é]{6,9}|redact|[a-z]{6}"#, 1..4),
            pieces in proptest::collection::vec(("[ab\\[\\]é-]{0,4}|https://|@|sk-|Bearer ", 0_usize..4), 0..12),
        ) {
            let text: String = pieces
                .iter()
                .flat_map(|(noise, choice)| [noise.as_str(), secrets.get(*choice).map_or("", String::as_str)])
                .collect();
            let redactor = Redactor::new(&secrets.iter().map(|secret| secret.as_str().into()).collect::<Vec<_>>());
            let clean = redactor.clean(&text);
            for secret in &secrets {
                let searched = secret.trim();
                prop_assert!(searched.chars().count() < 6 || !clean.as_str().contains(searched), "{clean} shows {secret}");
            }
            prop_assert_eq!(redactor.clean(clean.as_str()), clean);
        }

        #[test]
        fn known_formats_are_cleaned_once_and_for_all(text in "(ghp_[a-z]{24}|sk-[a-z]{24}|x|://|@|:|https|\\[redacted\\]|glpat-[a-z]{20}| ){0,12}") {
            let redactor = Redactor::default();
            let clean = redactor.clean(&text);
            prop_assert_eq!(redactor.clean(clean.as_str()), clean);
        }
    }
}
