//! Plain texts on one line: counts with their nouns, paths, and words of any origin.

use std::fmt::Display;

/// Returns a number with its noun: `1 turn`, `2 turns`. `what` is the noun for one.
pub fn counted<N: Copy + Display + PartialEq + From<u8>>(number: N, what: &str) -> String {
    format!("{number} {}", noun(number, what))
}

/// Returns the noun behind a number, without the number. `what` is the noun for one.
pub fn noun<N: Copy + PartialEq + From<u8>>(number: N, what: &str) -> String {
    let is_after_vowel = |stem: &&str| stem.ends_with(['a', 'e', 'o', 'u']);
    match what.strip_suffix('y').filter(|stem| !is_after_vowel(stem)) {
        Some(stem) => format!("{stem}{}", agreeing(number, "y", "ies")),
        None => format!("{what}{}", agreeing(number, "", "s")),
    }
}

/// Returns the word for one or for several, such as `is` or `are`.
pub fn agreeing<N: Copy + PartialEq + From<u8>>(number: N, one: &'static str, several: &'static str) -> &'static str {
    if number == N::from(1) { one } else { several }
}

/// Returns a number with separated thousands.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.char_indices() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns `text` with `�` in the place of each control character, so that a path takes one line.
pub fn printable(text: &str) -> String {
    text.replace(char::is_control, "\u{fffd}")
}

/// Returns the words of `text` on one line, with single spaces between them.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_noun_and_its_verb_agree_with_the_number() {
        let told = |number: usize| format!("{} {} left", counted(number, "file"), agreeing(number, "is", "are"));
        assert_eq!(
            [0, 1, 2].map(told),
            ["0 files are left", "1 file is left", "2 files are left"]
        );
        assert_eq!([1_u32, 2].map(|number| counted(number, "try")), ["1 try", "2 tries"]);
        assert_eq!([1_u64, 2].map(|number| counted(number, "day")), ["1 day", "2 days"]);
    }

    #[test]
    fn large_numbers_can_be_read() {
        assert_eq!(
            [7, 999, 1_000, 1_234_567].map(grouped),
            ["7", "999", "1,000", "1,234,567"]
        );
    }

    #[test]
    fn a_path_and_a_text_take_one_line() {
        assert_eq!(printable("a\n/b c\u{1b}.rs"), "a\u{fffd}/b c\u{fffd}.rs");
        assert_eq!(one_line(" two\n\n\twords "), "two words");
    }
}
