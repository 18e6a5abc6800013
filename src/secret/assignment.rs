//! Finds secrets of unknown form by their name: `DB_PASSWORD=...`, `"clientSecret": "..."`,
//! `--token ...`.
//!
//! The name alone is not enough, or half of all source code would be hidden: the value must look
//! random. Values that are named after a secret and are none stay: placeholders, calls,
//! identifiers, paths, digests, UUIDs.

use std::ops::Range;

use super::cued::Cued;

/// The kind that the mark names.
pub(super) const KIND: &str = "assigned-secret";

/// Names of secrets. The first group matches where the name leaves no doubt: a digest may be called
/// a token, but not an access token.
const NAMES: &str = concat!(
    r"(?i-u:((?:secret|api|access|private|signing|encryption|account|storage|shared|master)[_.-]?key",
    r"|(?:app|channel|client|consumer|webhook)[_.-]?secret|(?:access|auth|bearer|bot|refresh)[_.-]?token)",
    r"|pass(?:word|wd|phrase)|pwd|secret|token|credentials?)",
    r"(?i-u:[_.-]?(?:key|base(?:64)?|b64|value|token|secret|password))*",
);

/// Every name has one of these words in it.
const CUES: &[&str] = &["key", "secret", "token", "pass", "pwd", "credential"];

/// Words before a name that say that it is no secret's, as in `next_token`.
const HARMLESS: [&str; 8] = [
    "page",
    "next",
    "continue",
    "continuation",
    "cursor",
    "sync",
    "publickey",
    "public_key",
];
/// Words that people write where a secret belongs.
const PLACEHOLDERS: [&str; 14] = [
    "example",
    "placeholder",
    "changeme",
    "change-me",
    "change_me",
    "replace",
    "your-",
    "your_",
    "dummy",
    "sample",
    "xxxx",
    "redacted",
    "...",
    "****",
];
const SHORTEST: usize = 20;
const SHORTEST_HEX: usize = 32;
/// Least entropy in bits per character: twenty random characters have about four, a word or a
/// repetition has less.
const LEAST_ENTROPY: f64 = 3.5;
/// Least entropy of hexadecimal digits, which have four at most.
const LEAST_ENTROPY_OF_HEX: f64 = 3.0;
/// Most blanks between a name and its value.
const BLANKS: usize = 8;
/// Most quotation marks and what escapes them behind a name, or before a value: JSON within JSON
/// within JSON has eight.
const QUOTES: usize = 9;
/// Longest type or function between a name and its value.
const LONGEST_WORD: usize = 40;

/// Finds values by their names.
pub(super) struct Assignments(Cued);

impl Assignments {
    pub(super) fn new() -> Self {
        Self(Cued::new([(CUES, NAMES)]))
    }

    /// Returns the ranges of values, in the order of their names.
    pub(super) fn find(&self, text: &str) -> impl Iterator<Item = Range<usize>> {
        let names = self.0.patterns_for(text);
        names
            .flat_map(|(_, names)| names.captures_iter(text))
            .filter_map(move |groups| {
                let name = groups.get(0)?;
                let before = &text[..name.start()];
                if is_harmless(before) {
                    return None;
                }
                let value = Cursor::new(text, name.end()).value(is_option(before))?;
                is_secret(&text[value.clone()], groups.get(1).is_some()).then_some(value)
            })
    }
}

/// Tells whether the word in front of a name says that it is no secret's.
fn is_harmless(before: &str) -> bool {
    let before = before.as_bytes();
    let end = before.len() - before.iter().rev().take(1).filter(|byte| b"_-.".contains(byte)).count();
    HARMLESS.iter().any(|word| {
        let start = end.saturating_sub(word.len());
        before[start..end].eq_ignore_ascii_case(word.as_bytes())
    })
}

/// Tells whether the name behind `before` belongs to an option of a command line.
fn is_option(before: &str) -> bool {
    let word = before.as_bytes().iter().rev().take(LONGEST_WORD);
    let word: Vec<u8> = word
        .copied()
        .take_while(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte))
        .collect();
    word.ends_with(b"--")
}

/// Reads the text behind a name.
struct Cursor<'text> {
    bytes: &'text [u8],
    at: usize,
}

impl<'text> Cursor<'text> {
    fn new(text: &'text str, at: usize) -> Self {
        let bytes = text.as_bytes();
        Self { bytes, at }
    }

    /// Returns the range of the value, if there is one.
    fn value(mut self, is_option: bool) -> Option<Range<usize>> {
        self.skip(QUOTES, |byte| b"\\\"'`]".contains(&byte));
        let blanks = self.skip(BLANKS, |byte| b" \t".contains(&byte));
        let is_assigned = self.separator() || is_option && blanks > 0;
        if !is_assigned {
            return None;
        }
        self.skip(BLANKS, |byte| b" \t".contains(&byte));
        self.type_or_call();
        match self.opening_quote() {
            Some(quote) => self.quoted(quote),
            None => self.bare(),
        }
    }

    fn skip(&mut self, most: usize, is_skipped: impl Fn(u8) -> bool) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let length = rest.iter().take(most).take_while(|byte| is_skipped(**byte)).count();
        self.at += length;
        length
    }

    fn take(&mut self, word: &[u8]) -> bool {
        let is_next = self.bytes.get(self.at..).is_some_and(|rest| rest.starts_with(word));
        if is_next {
            self.at += word.len();
        }
        is_next
    }

    /// Takes the separator between a name and its value. The value may have a name of its own, in
    /// XML and in the environment of a container.
    fn separator(&mut self) -> bool {
        if self.take(b"::") {
            return false;
        }
        if [b"=>".as_slice(), b":=", b"==", b"=", b":", b">"]
            .iter()
            .any(|word| self.take(word))
        {
            return true;
        }
        self.skip(2, |byte| byte == b',');
        self.skip(4 * BLANKS, |byte| byte.is_ascii_whitespace());
        self.skip(1, |byte| byte == b'"');
        if !self.take(b"value") {
            return false;
        }
        self.skip(1, |byte| byte == b'"');
        self.take(b"=") || self.take(b":")
    }

    /// Takes `&str = ` of `token: &str = "..."` and `String::from(` of `token =
    /// String::from("...")`.
    fn type_or_call(&mut self) {
        let begun = self.at;
        self.skip(LONGEST_WORD, |byte| {
            byte.is_ascii_alphabetic() || b"&'<>_?: .".contains(&byte)
        });
        if self.at > begun && (self.take(b"=") && !self.take(b"=") || self.take(b"(") && self.is_at_quote()) {
            self.skip(BLANKS, |byte| b" \t".contains(&byte));
            return;
        }
        self.at = begun;
        for word in [b"Bearer ".as_slice(), b"bearer ", b"Basic ", b"basic "] {
            self.take(word);
        }
    }

    fn is_at_quote(&self) -> bool {
        self.bytes.get(self.at).is_some_and(|byte| b"\"'`\\".contains(byte))
    }

    fn opening_quote(&mut self) -> Option<u8> {
        let begun = self.at;
        // b"...", r'...', @"...".
        self.skip(1, |byte| byte.is_ascii_alphabetic() || byte == b'@');
        self.skip(QUOTES, |byte| byte == b'\\');
        let quote = self.bytes.get(self.at).copied().filter(|byte| b"\"'`".contains(byte));
        self.at = if quote.is_some() { self.at + 1 } else { begun };
        quote
    }

    /// Returns the value up to its closing quote. A text with blanks is not random.
    fn quoted(&self, quote: u8) -> Option<Range<usize>> {
        let rest = self.bytes.get(self.at..)?;
        let length = rest
            .iter()
            .position(|byte| *byte == quote || !byte.is_ascii_graphic())?;
        // Those that escape the quote, which are several in JSON within JSON.
        let escapes = rest[..length].iter().rev().take_while(|byte| **byte == b'\\');
        (rest[length] == quote).then_some(self.at..self.at + length - escapes.count())
    }

    fn bare(&self) -> Option<Range<usize>> {
        let rest = self.bytes.get(self.at..)?;
        let is_part = |byte: &u8| byte.is_ascii_graphic() && !b"\"'`,;&<>()[]{}|\\=:".contains(byte);
        let mut length = rest.iter().take_while(|byte| is_part(byte)).count();
        length += rest[length..].iter().take(2).take_while(|byte| **byte == b'=').count();
        // A word before `(` is a call.
        (rest.get(length) != Some(&b'(')).then_some(self.at..self.at + length)
    }
}

/// Tells whether `value` looks random.
fn is_secret(value: &str, has_clear_name: bool) -> bool {
    let lower = value.to_ascii_lowercase();
    if value.len() < SHORTEST
        || value.starts_with(['$', '<', '{', '%', '@', '/', '.', '~', '*', '-', '!'])
        || ["${", "{{", "://"].iter().any(|sign| value.contains(sign))
        || ["sha1-", "sha256-", "sha384-", "sha512-", "sha256:", "md5-", "h1:"]
            .iter()
            .any(|prefix| lower.starts_with(prefix))
        || PLACEHOLDERS.iter().any(|word| lower.contains(word))
    {
        return false;
    }
    if value.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-') {
        return has_clear_name
            && value.len() >= SHORTEST_HEX
            && !value.contains('-')
            && entropy(value) >= LEAST_ENTROPY_OF_HEX;
    }
    let has = |is_of_class: fn(&u8) -> bool| value.as_bytes().iter().any(is_of_class);
    has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
        && entropy(value) >= LEAST_ENTROPY
        && changes(value) * 4 >= value.len()
        && !(has(u8::is_ascii_uppercase) && in_words(value) * 2 > value.len())
}

/// Returns Shannon's entropy in bits for each character.
fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value.bytes() {
        counts[usize::from(byte)] += 1;
    }
    #[expect(clippy::cast_precision_loss, reason = "a value has less than 2^52 characters")]
    let length = value.len() as f64;
    let shares = counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / length);
    shares.map(|share| -share * share.log2()).sum()
}

/// Returns how often the class of characters changes, e.g. from digit to letter. A capital and the
/// letter behind it are no change; nor is what separates words.
fn changes(value: &str) -> usize {
    #[derive(PartialEq, Clone, Copy)]
    enum Class {
        Lower,
        Upper,
        Digit,
        Between,
        Sign,
    }
    let class = |byte: u8| match byte {
        b'a'..=b'z' => Class::Lower,
        b'A'..=b'Z' => Class::Upper,
        b'0'..=b'9' => Class::Digit,
        b'_' | b'-' | b'.' | b'/' | b':' => Class::Between,
        _ => Class::Sign,
    };
    let pairs = value.as_bytes().windows(2).map(|pair| (class(pair[0]), class(pair[1])));
    pairs
        .filter(|(one, next)| {
            one != next
                && !matches!(
                    (one, next),
                    (Class::Upper, Class::Lower) | (Class::Between, _) | (_, Class::Between)
                )
        })
        .count()
}

/// Returns the number of characters in runs like `Value` and `value`.
fn in_words(value: &str) -> usize {
    let mut all = 0;
    let mut run = 0;
    for byte in value.bytes().chain([b'0']) {
        if byte.is_ascii_lowercase() {
            run += 1;
            continue;
        }
        all += if run >= 3 { run + 1 } else { 0 };
        run = 0;
    }
    all
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::string::string_regex;

    use super::{CUES, LEAST_ENTROPY, NAMES, entropy};
    use crate::secret::Redactor;

    /// Built from parts, so that no scanner takes this file for a leak.
    fn thrown() -> String {
        ["q7Rk2Zp9", "Xw4Lm8Tv", "1Bn6Yc3H"].concat()
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(Redactor::default().clean(text).as_str(), expected);
    }

    #[test]
    fn the_value_behind_a_name_goes_and_the_name_stays() {
        for frame in [
            "DB_PASSWORD=#",
            "export LINE_CHANNEL_ACCESS_TOKEN='#'",
            "password: #\nuser: x",
            "\"clientSecret\": \"#\",",
            r##"{"body":"{\"api_key\": \"#\"}"}"##,
            r##"{"text":"{\"body\":\"{\\\"api_key\\\": \\\"#\\\"}\"}"}"##,
            "secret_key = \"#\" // production",
            "deploy --token # --force",
            "deploy --registry-token=#",
            "let api_key: &str = \"#\";",
            "const String ApiKey = @\"#\";",
            "token := \"#\"",
            "$credentials => '#'",
            "key = Secret::from(\"x\"), token = String::from(\"#\")",
            "<password>#</password>",
            "<add key=\"ApiToken\" value=\"#\"/>",
            "- name: API_TOKEN\n  value: #\n",
            "https://host.test/a?access_token=#&page=2",
            "os.environ[\"APP_SECRET\"] = \"#\"",
            "SECRET_KEY_BASE: #",
            "x-auth-token: Bearer #",
        ] {
            check(
                &frame.replace('#', &thrown()),
                &frame.replace('#', "[redacted:assigned-secret]"),
            );
        }
        let padded = format!("{}==", thrown());
        check(&format!("token={padded}"), "token=[redacted:assigned-secret]");
    }

    #[test]
    fn hexadecimal_digits_go_only_where_the_name_leaves_no_doubt() {
        let digits = ["9f86d081884c7d65", "9a2feaa0c55ad015"].concat();
        check(
            &format!("LINE_CHANNEL_SECRET={digits}"),
            "LINE_CHANNEL_SECRET=[redacted:assigned-secret]",
        );
        check(
            &format!("signing_key: {digits}"),
            "signing_key: [redacted:assigned-secret]",
        );
        let digest = format!("token: {digits}\npassword_hash: {digits}\ncheckout secret={digits}");
        check(&digest, &digest);
    }

    #[test]
    fn ordinary_texts_stay_as_they_are() {
        let texts = include_str!("../../tests/data/ordinary-texts.txt");
        assert!(texts.lines().count() > 100);
        let redactor = Redactor::default();
        let changed: Vec<_> = texts
            .lines()
            .map(|line| (line, redactor.clean(line).into_string()))
            .filter(|(line, clean)| line != clean)
            .collect();
        assert!(changed.is_empty(), "{changed:#?}");
        check(texts, texts);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// A name without its cue would never be searched.
        #[test]
        fn every_name_has_one_of_the_cues(name in string_regex(NAMES).unwrap()) {
            let name = name.to_ascii_lowercase();
            prop_assert!(CUES.iter().any(|cue| name.contains(cue)), "{name}");
        }

        /// One in a thousand purely random values has no digit, and is left alone like any other
        /// long name.
        #[test]
        fn thrown_values_are_found_and_cleaned_once_and_for_all(
            value in "([A-Z]{1,2}[0-9]{1,2}[a-z]{1,2}){10,14}",
            name in "(api_|my-)?(token|password|secret)",
        ) {
            prop_assume!(entropy(&value) >= LEAST_ENTROPY);
            let redactor = Redactor::default();
            let clean = redactor.clean(&format!("{name} = {value}\n"));
            prop_assert_eq!(clean.as_str(), format!("{name} = [redacted:assigned-secret]\n"));
            prop_assert_eq!(redactor.clean(clean.as_str()), clean);
        }

        #[test]
        fn any_text_is_read_to_its_end(text in "(token|api_key|[=:>\"' \\\\]|--|value|é|[A-Za-z0-9]{20,24}|\\[redacted\\]|\n){0,24}") {
            let redactor = Redactor::default();
            let clean = redactor.clean(&text);
            prop_assert_eq!(redactor.clean(clean.as_str()), clean);
        }
    }
}
