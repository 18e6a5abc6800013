//! Finds personal data by its form: addresses of e-mail, telephone numbers, numbers of payment
//! cards, and My Number, the Japanese number of a person. The last two have check digits, so that
//! hardly another number is taken for one.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// Domains that documents use in examples; nobody has an address there.
const EXAMPLES: [&str; 7] = [
    "example.com",
    "example.net",
    "example.org",
    "example.jp",
    ".example",
    ".invalid",
    ".test",
];
/// Users of addresses that belong to a service: `git@host` names a repository.
const SERVICES: [&str; 2] = ["git", "hg"];

static EMAIL: LazyLock<Regex> = LazyLock::new(|| {
    pattern(r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]{0,250}[A-Za-z0-9])?\.[A-Za-z]{2,24}")
});
/// With a country code; Japanese with hyphens; North American.
static TELEPHONE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"\+\d{1,3}(?:[ .-]?\(?\d{1,5}\)?){2,6}",
        r"|\(?0\d{1,4}\)?[ -]?\d{1,4}-\d{3,4}",
        r"|\(\d{3}\) ?\d{3}-\d{4}",
        r"|\d{3}-\d{3}-\d{4}",
    ))
});
/// Twelve to nineteen digits, alone or in groups.
static DIGITS: LazyLock<Regex> = LazyLock::new(|| pattern(r"\d(?:[ -]?\d){11,18}"));

#[expect(clippy::expect_used, reason = "the patterns are constants, and a test compiles them")]
fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a constant pattern compiles")
}

/// Returns the text with each piece of personal data replaced by a mark, such as
/// `[redacted:email]`.
pub fn masked(text: &str) -> String {
    let mut found: Vec<(Range<usize>, &str)> = Vec::new();
    found.extend(emails(text).map(|range| (range, "email")));
    found.extend(numbers(text));
    found.extend(telephones(text).map(|range| (range, "telephone")));
    // Of what overlaps, the first in the list counts; it is the surer one.
    found.sort_by_key(|(range, _)| range.start);
    let mut masked = String::with_capacity(text.len());
    let mut end = 0;
    for (range, kind) in found {
        if range.start < end {
            continue;
        }
        masked.push_str(&text[end..range.start]);
        masked.push_str("[redacted:");
        masked.push_str(kind);
        masked.push(']');
        end = range.end;
    }
    masked.push_str(&text[end..]);
    masked
}

fn emails(text: &str) -> impl Iterator<Item = Range<usize>> {
    EMAIL.find_iter(text).filter_map(|found| {
        let (user, domain) = found.as_str().rsplit_once('@')?;
        let domain = domain.to_ascii_lowercase();
        let is_example = EXAMPLES.iter().any(|example| match example.strip_prefix('.') {
            Some(_) => domain.ends_with(example),
            None => domain == *example || domain.ends_with(&format!(".{example}")),
        });
        // The letter behind a backslash is part of an escape, in a text that stands in JSON.
        let is_escaped = text[..found.start()].ends_with('\\') && user.starts_with(['n', 'r', 't', 'b', 'f']);
        let start = found.start() + usize::from(is_escaped);
        let is_left = user.len() > usize::from(is_escaped);
        (is_left && !is_example && !SERVICES.contains(&user)).then_some(start..found.end())
    })
}

/// Returns numbers of cards and of persons, with their kind.
fn numbers(text: &str) -> impl Iterator<Item = (Range<usize>, &'static str)> {
    DIGITS.find_iter(text).filter_map(|found| {
        // The last groups may be another number, such as a date.
        let ends = found.as_str().rmatch_indices([' ', '-']).map(|(end, _)| end);
        let ends = [found.len()].into_iter().chain(ends);
        let mut numbers = ends.filter_map(|end| {
            let range = found.start()..found.start() + end;
            let kind = kind_of(&text[range.clone()])?;
            // The first twelve digits of a card may pass for a My Number.
            (kind == "card" || end == found.len()).then_some((range, kind))
        });
        numbers.find(|(range, _)| stands_alone(text, range))
    })
}

fn kind_of(number: &str) -> Option<&'static str> {
    let digits: Vec<u32> = number.chars().filter_map(|sign| sign.to_digit(10)).collect();
    match digits.len() {
        12 if is_my_number(&digits) => Some("my-number"),
        13..=19 if is_card(&digits) => Some("card"),
        _ => None,
    }
}

fn telephones(text: &str) -> impl Iterator<Item = Range<usize>> {
    TELEPHONE.find_iter(text).filter_map(|found| {
        let digits = found.as_str().chars().filter(char::is_ascii_digit).count();
        let lengths = if found.as_str().starts_with('+') {
            8..=15
        } else {
            10..=11
        };
        let is_long_enough = lengths.contains(&digits);
        (is_long_enough && stands_alone(text, &found.range())).then_some(found.range())
    })
}

/// Tells whether a number is no part of a longer word, version, path or number.
fn stands_alone(text: &str, range: &Range<usize>) -> bool {
    let is_part = |sign: char| sign.is_alphanumeric() || matches!(sign, '_' | '-' | '/' | '#' | '.' | '+');
    let before = text[..range.start].chars().next_back();
    let mut after = text[range.end..].chars();
    let is_continued = match after.next() {
        // The end of a sentence.
        Some('.') => after.next().is_some_and(char::is_alphanumeric),
        Some(sign) => is_part(sign) && sign != '/',
        None => false,
    };
    // In JSON a line break is a backslash and a letter.
    let is_begun =
        before.is_some_and(is_part) && !text[..range.start].ends_with("\\n") && !text[..range.start].ends_with("\\t");
    !is_begun && !is_continued
}

/// Checks the last digit of a card by Luhn's sum. Cards begin with 2 to 6.
fn is_card(digits: &[u32]) -> bool {
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(place, digit)| match (place % 2, digit * 2) {
            (0, _) => *digit,
            (_, twice) if twice > 9 => twice - 9,
            (_, twice) => twice,
        })
        .sum();
    let is_one_digit = digits.windows(2).all(|pair| pair[0] == pair[1]);
    sum.is_multiple_of(10) && !is_one_digit && digits.first().is_some_and(|first| (2..=6).contains(first))
}

/// Checks the last digit of a My Number: the remainder by 11 of a sum with weights 2 to 7 and 2 to
/// 6 from the right.
fn is_my_number(digits: &[u32]) -> bool {
    let Some((check, digits)) = digits.split_last() else {
        return false;
    };
    let weights = (2..=7).chain(2..=6);
    let sum: u32 = digits
        .iter()
        .rev()
        .zip(weights)
        .map(|(digit, weight)| digit * weight)
        .sum();
    let is_one_digit = digits.windows(2).all(|pair| pair[0] == pair[1]);
    let expected = match sum % 11 {
        0 | 1 => 0,
        rest => 11 - rest,
    };
    *check == expected && !is_one_digit
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn personal_data_is_masked_by_its_form() {
        for (text, expected) in [
            (
                "Write to taro.yamada@acme.co.jp, please.",
                "Write to [redacted:email], please.",
            ),
            ("<Bob+x@mail.acme.io>", "<[redacted:email]>"),
            (r#"{"a":"x\nbob@acme.io"}"#, r#"{"a":"x\n[redacted:email]"}"#),
            ("Call 090-1234-5678.", "Call [redacted:telephone]."),
            (
                "03-1234-5678 / +81 90 1234 5678",
                "[redacted:telephone] / [redacted:telephone]",
            ),
            (
                "(555) 123-4567 or 555-123-4567",
                "[redacted:telephone] or [redacted:telephone]",
            ),
            ("+1-202-555-0143", "[redacted:telephone]"),
            ("4111 1111 1111 1111 12/27", "[redacted:card] 12/27"),
            (
                "pay 4111-1111-1111-1111 and 378282246310005",
                "pay [redacted:card] and [redacted:card]",
            ),
            (
                "1234 5678 9018, 123456789018",
                "[redacted:my-number], [redacted:my-number]",
            ),
        ] {
            assert_eq!(masked(text), expected, "{text}");
            assert_eq!(masked(expected), expected, "{expected}");
        }
    }

    #[test]
    fn what_only_looks_like_it_stays() {
        for text in [
            "git@github.com:acme/widgets.git",
            "you@example.com, me@docs.example.org, a@b.invalid",
            "npm i @types/node@20.1.2",
            "2026-01-03T10:11:12.123456Z",
            "2026-01-03 10:11:12",
            "192.168.100.200 and 10.0.0.1:8080",
            "version 1.234.567-8901",
            "4111 1111 1111 1112",
            "123456789012",
            "0000000000000000 111111111111",
            "019a2b3c-4d5e-7f60-8123-4567890abcde",
            "sha256:4111111111111111abcdef",
            "pages 100-200-3000x",
            "0x0123456789",
        ] {
            assert_eq!(masked(text), text);
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_strange(text in "(?s)[0-9a-z@.+() \\\\n-]{0,80}") {
            let once = masked(&text);
            prop_assert!(once.len() <= text.len() * 4);
        }

        #[test]
        fn what_has_no_digits_and_no_sign_of_an_address_stays(text in "[a-zA-Z ,.!?äö日本-]{0,80}") {
            prop_assert_eq!(masked(&text), text);
        }
    }
}
