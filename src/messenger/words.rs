//! Texts as messengers take them: bounded, and with no sign that a messenger would act on.

use serde::{Deserialize, Serialize};

/// A text with buttons below it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Words {
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Button>,
}

/// A button. Its value comes back with the press.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Button {
    pub label: String,
    pub value: String,
    pub is_dangerous: bool,
}

/// Splits a text into parts of at most `most` characters: between paragraphs, else lines, else
/// sentences and words, else anywhere. Nothing is lost but the white space at the places.
pub fn split(text: &str, most: usize) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text.trim();
    while rest.chars().count() > most {
        let end = rest.char_indices().nth(most).map_or(rest.len(), |(place, _)| place);
        let head = &rest[..end];
        // A part of less than a third is no better than a cut within a line.
        let is_long = |place: &usize| *place > end / 3;
        let places = ["\n\n", "\n", "。", ". ", " ", "、"].map(|sign| {
            let found = head.rfind(sign)?;
            Some(
                found
                    + if sign.trim().is_empty() {
                        0
                    } else {
                        sign.trim_end().len()
                    },
            )
            .filter(is_long)
        });
        let place = places.into_iter().flatten().next().unwrap_or(end);
        parts.push(rest[..place].trim_end().to_owned());
        rest = rest[place..].trim_start();
    }
    if !rest.is_empty() || parts.is_empty() {
        parts.push(rest.to_owned());
    }
    parts
}

/// Returns a text without signs that are not seen, or that turn the text around.
pub fn visible(text: &str) -> String {
    let is_hidden = |sign: char| {
        (sign.is_control() && sign != '\n' && sign != '\t')
            || matches!(sign, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    text.chars().filter(|sign| !is_hidden(*sign)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_long_text_is_cut_between_paragraphs() {
        assert_eq!(split("one\n\ntwo\n\nthree", 9), ["one\n\ntwo", "three"]);
        assert_eq!(split("one\ntwo\nthree", 8), ["one\ntwo", "three"]);
        assert_eq!(split("ああ。いい。うう", 6), ["ああ。いい。", "うう"]);
        assert_eq!(split("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(split("  ", 3), [""]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_no_part_is_too_long(text in any::<String>(), most in 1_usize..50) {
            let parts = split(&text, most);
            let plain = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(plain(&parts.concat()), plain(&text));
            prop_assert!(parts.iter().all(|part| part.chars().count() <= most));
        }
    }
}
