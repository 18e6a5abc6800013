//! Scores from 0 to 10, and how they are written.

use std::fmt;
use std::sync::LazyLock;

use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A score from 0 to 10 in hundredths, rounded down: 7.999 is not 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "f64", into = "f64")]
#[schemars(with = "f64")]
pub struct Score(u16);

/// A number that is no score.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a score is a number from 0 to 10")]
pub struct OutOfRange;

impl Score {
    /// The usual target.
    pub const EIGHT: Self = Self(800);

    /// Returns `part` of `whole` as a score.
    pub fn share(part: f64, whole: f64) -> Result<Self, OutOfRange> {
        if whole > 0.0 {
            Self::try_from(part * 10.0 / whole)
        } else {
            Err(OutOfRange)
        }
    }

    /// Reads a score that is written out, as "8.5", "8/10", "85%", "8.5点" or "8 out of 10". Of a
    /// range ("7-8"), and of several with a scale, the lowest counts. A number above 10 without a
    /// scale is refused, not guessed at.
    pub fn read(text: &str) -> Result<Self, OutOfRange> {
        let text = narrow(text);
        let mut scores = SCALED.captures_iter(&text).map(|found| {
            let group = |names: [&str; 2]| names.into_iter().find_map(|name| number(found.name(name)?.as_str()));
            let low = group(["part", "share"]).ok_or(OutOfRange)?;
            let high = found
                .name("upper")
                .map(|upper| number(upper.as_str()).ok_or(OutOfRange));
            let part = high.transpose()?.map_or(low, |high| low.min(high));
            let whole = group(["whole", "full"]).unwrap_or(100.0);
            Self::share(part, whole)
        });
        if let Some(first) = scores.next() {
            return scores.try_fold(first?, |lowest, score| Ok(lowest.min(score?)));
        }
        let found = BARE.captures(&text).ok_or(OutOfRange)?;
        let score = |name| {
            let text = found.name(name).map(|text| text.as_str());
            text.map(|text| number(text).ok_or(OutOfRange).and_then(Self::try_from))
        };
        let low = score("part").unwrap_or(Err(OutOfRange))?;
        score("upper").map_or(Ok(low), |upper| Ok(low.min(upper?)))
    }

    pub fn value(self) -> f64 {
        f64::from(self.0) / 100.0
    }
}

impl TryFrom<f64> for Score {
    type Error = OutOfRange;

    fn try_from(value: f64) -> Result<Self, OutOfRange> {
        if !(0.0..=10.0).contains(&value) {
            return Err(OutOfRange);
        }
        // 8.7 * 100 is 869.9999999999999.
        let hundredths = (value * 100.0 + 1e-6).floor();
        format!("{hundredths:.0}").parse().map(Self).map_err(|_| OutOfRange)
    }
}

impl From<Score> for f64 {
    fn from(score: Score) -> Self {
        score.value()
    }
}

impl fmt::Display for Score {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = self.value();
        if self.0.is_multiple_of(10) {
            write!(formatter, "{value:.1}")
        } else {
            write!(formatter, "{value:.2}")
        }
    }
}

/// Returns the text with full-width digits and signs as ASCII.
pub(super) fn narrow(text: &str) -> String {
    let narrowed = |letter: char| match letter {
        '\u{FF01}'..='\u{FF5E}' => char::from_u32(u32::from(letter) - 0xFEE0).unwrap_or(letter),
        '\u{3000}' => ' ',
        '’' => '\'',
        _ => letter,
    };
    text.chars().map(narrowed).collect()
}

fn number(text: &str) -> Option<f64> {
    text.replace(',', ".").parse().ok()
}

/// A number with its scale, anywhere in the text. What is before a number must not be part of it.
static SCALED: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)(?P<full>\d+)\s*点(?:満点)?\s*(?:満点)?\s*(?:中|で|のうち)[\s、,:]*(?P<share>-?\d+(?:[.,]\d+)?)",
        r"|(?P<part>-?\b\d+(?:[.,]\d+)?)(?:\s*(?:-|–|~|〜|to)\s*(?P<upper>\d+(?:[.,]\d+)?))?\s*[*_`)]{0,3}",
        r"(?:\s*(?:/|out of|of)\s*(?P<whole>\d+(?:[.,]\d+)?)|\s*%)",
    ))
});

/// A number without a scale, at the beginning of the text.
static BARE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(concat!(
        r"(?i)^[^\p{L}\d-]{0,8}(?:(?:about|around|approx\.?|approximately|roughly|約)\s*)?",
        r"(?P<part>-?\d+(?:[.,]\d+)?)(?:\s*(?:-|–|~|〜|から|to)\s*(?P<upper>\d+(?:[.,]\d+)?))?",
        r"\s*(?:$|点|[^\p{L}\d.,%/-]|[.,](?:\s|$)|-\s|points?\b|pts?\b)",
    ))
});

#[expect(
    clippy::expect_used,
    reason = "the patterns are constants, and every one of them is compiled by a test"
)]
pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a pattern of this module")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Option<String> {
        Score::read(text).ok().map(|score| score.to_string())
    }

    #[test]
    fn scores_are_read_as_they_are_written() {
        for (text, expected) in [
            ("8", "8.0"),
            ("8.25", "8.25"),
            ("8,5", "8.5"),
            ("8.5.", "8.5"),
            ("**8.5**/10", "8.5"),
            ("8/10", "8.0"),
            (" 8 / 10 (good)", "8.0"),
            ("8 out of 10", "8.0"),
            ("4/5 stars", "8.0"),
            ("85/100", "8.5"),
            ("85%", "8.5"),
            ("8.5点", "8.5"),
            ("８．５点", "8.5"),
            ("約8点", "8.0"),
            ("10点満点中8.5点", "8.5"),
            ("100点満点で85点", "8.5"),
            ("7-8/10", "7.0"),
            ("7〜8点", "7.0"),
            ("8/10 → 6/10", "6.0"),
            ("8.5 points", "8.5"),
            ("10", "10.0"),
            ("0/10", "0.0"),
            ("7.999", "7.99"),
            ("8 - solid", "8.0"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_score_is_refused() {
        for text in [
            "",
            "85",
            "85点",
            "11/10",
            "-2",
            "-1/10",
            "N/A",
            "high",
            "A-",
            "8.5.1",
            "8th",
            "v8",
            "NaN",
            "8/0",
            "inf",
            "1e1",
            "１００",
            "8x",
            "ready",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn hundredths_are_rounded_down_and_kept() {
        for (value, hundredths) in [(8.7, 870), (8.0, 800), (7.999_999, 799), (0.29, 29), (10.0, 1000)] {
            let score = Score::try_from(value).unwrap();
            assert_eq!(score, Score(hundredths));
            let json = serde_json::to_string(&score).unwrap();
            assert_eq!(serde_json::from_str::<Score>(&json).unwrap(), score);
        }
        assert!(serde_json::from_str::<Score>("10.01").is_err());
        assert_eq!(Score::try_from(f64::NAN), Err(OutOfRange));
    }

    proptest! {
        #[test]
        fn no_text_gives_a_score_outside_the_range(text in r"[-0-9.,/%点満中〜 a-z]{0,40}") {
            if let Ok(score) = Score::read(&text) {
                prop_assert!((0.0..=10.0).contains(&score.value()));
            }
        }

        #[test]
        fn what_is_shown_is_read_back(hundredths in 0..=1000_u16) {
            prop_assert_eq!(Score::read(&Score(hundredths).to_string()), Ok(Score(hundredths)));
        }
    }
}
