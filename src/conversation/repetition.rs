//! Notices a reply that writes the same piece over and over, as small models do until a length
//! limit ends them: all of it is waited for, and paid.
//!
//! One rule, on the end of the text alone. What is regular by its nature is no repetition: lines of
//! dashes, padding, rows of a table, columns of numbers; nor is a short line that stands there a
//! few dozen times, as in a list of test data.

/// Longest end of a text that is looked at, in characters.
const TAIL: usize = 8_192;
/// Bytes by which a text grows between two looks at it.
const STEP: usize = 512;
/// Fewest occurrences of a piece in a row, and fewest characters that they have together.
const FEWEST_TIMES: usize = 4;
const FEWEST_CHARACTERS: usize = 1_200;
/// Shortest piece, in characters. A shorter one counts where the whole end of the text is made of
/// it.
const SHORTEST: usize = 40;
/// Fewest different letters of a piece: words have more than the values of a table.
const FEWEST_LETTERS: usize = 10;
/// How rows of tables begin in Markdown and HTML.
const ROWS: [&str; 4] = ["|", "<tr", "<td", "</tr"];

/// The repetition that a text ends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repetition {
    /// The piece that is repeated, from the beginning of one of its lines or words on.
    pub piece: String,
    /// Number of its whole occurrences.
    pub times: usize,
}

/// Looks now and then at a text that grows.
#[derive(Debug, Default)]
pub struct Watch {
    /// Length of the text at the last look, in bytes.
    looked_at: usize,
}

impl Watch {
    /// Looks at the end of `text`, once enough has come since the last look. What it repeats is cut
    /// down to one occurrence, and returned.
    pub fn look(&mut self, text: &mut String) -> Option<Repetition> {
        if text.len() < self.looked_at {
            // Another text of the same reply.
            self.looked_at = 0;
        }
        if text.len() < self.looked_at + STEP {
            return None;
        }
        self.looked_at = text.len();
        cut(text)
    }
}

/// Cuts the repetition that `text` ends with down to one occurrence; returns `None` if there is
/// none.
fn cut(text: &mut String) -> Option<Repetition> {
    let backwards: Vec<char> = text.chars().rev().take(TAIL).collect();
    let period = period(&backwards)?;
    let length: usize = backwards[..period].iter().map(|letter| letter.len_utf8()).sum();
    // It may have begun before the part that was looked at.
    let bytes = text.as_bytes();
    let mut start = text.len() - length;
    while start > 0 && bytes[start - 1] == bytes[start - 1 + length] {
        start -= 1;
    }
    let start = text.ceil_char_boundary(start);
    let times = (text.len() - start) / length;
    let (piece, rest) = text.get(start..)?.split_at_checked(length)?;
    let repetition = Repetition {
        piece: from_a_border_on(piece),
        times,
    };
    // What stands before it may end as the piece does; then its own end is yet to come.
    let end_of_line = rest.find('\n').filter(|end| *end < length && !piece.ends_with('\n'));
    text.truncate(start + length + end_of_line.map_or(0, |end| end + 1));
    Some(repetition)
}

/// Returns a piece as it stands in the text from the beginning of a line or word on: where the
/// repetition begins may be in the middle of one.
fn from_a_border_on(piece: &str) -> String {
    let border = piece.find('\n').or_else(|| piece.find(' '));
    let (behind, first) = piece.split_at(border.map_or(0, |border| border + 1));
    format!("{first}{behind}")
}

/// Returns the number of characters of the piece that a text, given backwards, ends with often
/// enough.
fn period(backwards: &[char]) -> Option<usize> {
    let agreeing = agreeing(backwards);
    let mut passed_over: Vec<usize> = Vec::new();
    for period in 1..=backwards.len() / FEWEST_TIMES {
        let covered = period + agreeing[period];
        let is_often = covered >= (FEWEST_TIMES * period).max(FEWEST_CHARACTERS);
        // Several occurrences of a piece are a piece as well.
        if !is_often || passed_over.iter().any(|shorter| period % shorter == 0) {
            continue;
        }
        let is_long = period >= SHORTEST || covered == TAIL;
        if is_long && is_telling(&backwards[..period]) {
            return Some(period);
        }
        passed_over.push(period);
    }
    None
}

/// Returns for each place how many characters from there on are the same as from the beginning on
/// (the Z function). The time is linear.
fn agreeing(text: &[char]) -> Vec<usize> {
    let mut agreeing = vec![0; text.len()];
    let (mut from, mut to) = (0, 0);
    for place in 1..text.len() {
        let mut length = if place < to {
            agreeing[place - from].min(to - place)
        } else {
            0
        };
        while text.get(place + length).is_some_and(|letter| *letter == text[length]) {
            length += 1;
        }
        agreeing[place] = length;
        if place + length > to {
            (from, to) = (place, place + length);
        }
    }
    agreeing
}

/// Tells whether a piece, given backwards, is made of words and is no row of a table.
fn is_telling(backwards: &[char]) -> bool {
    let mut letters: Vec<char> = backwards
        .iter()
        .copied()
        .filter(|letter| letter.is_alphabetic())
        .collect();
    letters.sort_unstable();
    letters.dedup();
    if letters.len() < FEWEST_LETTERS {
        return false;
    }
    let piece = from_a_border_on(&backwards.iter().rev().collect::<String>());
    let mut lines = piece.lines().map(str::trim_start).filter(|line| !line.is_empty());
    !lines.all(|line| ROWS.iter().any(|row| line.starts_with(row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds a text in pieces of `size` characters; returns what was written, and what it was ended
    /// for.
    fn written(text: &str, size: usize) -> (String, Option<Repetition>) {
        let letters: Vec<char> = text.chars().collect();
        let (mut watch, mut written) = (Watch::default(), String::new());
        for piece in letters.chunks(size) {
            written.extend(piece);
            if let Some(repetition) = watch.look(&mut written) {
                return (written, Some(repetition));
            }
        }
        (written, None)
    }

    #[test]
    fn a_reply_ends_behind_the_first_occurrence() {
        let piece = "Now I run the tests again, and read what they say.\n";
        // Both end with the same two characters.
        let (kept, repetition) = written(&format!("The sign is wrong.\n{}", piece.repeat(100)), 7);
        assert_eq!(kept, format!("The sign is wrong.\n{piece}"));
        let repetition = repetition.unwrap();
        assert_eq!(repetition.piece.len(), piece.len());
        assert!((24..=36).contains(&repetition.times), "{repetition:?}");
    }

    #[test]
    fn all_that_came_at_once_is_cut() {
        let piece = "次に、テストをもう一度実行して、その結果を読みます。そして、もう一度ファイルを直して保存します。";
        let (kept, repetition) = written(&format!("直します。{}", piece.repeat(900)), usize::MAX);
        // Nothing tells that the piece does not begin with what both end with.
        assert_eq!(kept, format!("直します。{}", piece.trim_end_matches("します。")));
        assert_eq!(repetition.unwrap().times, 900);
    }

    #[test]
    fn a_short_piece_counts_where_nothing_else_is_left() {
        let line = "    self.check(\"forever\", value)\n";
        let (_, repetition) = written(&line.repeat(200), 100);
        assert_eq!(repetition, None);
        let (kept, repetition) = written(&line.repeat(600), 100);
        assert_eq!(kept, line);
        assert_eq!(repetition.unwrap().piece, line);
    }

    #[test]
    fn what_is_regular_by_its_nature_is_no_repetition() {
        for (what, times) in [
            ("-", 10_000),
            (" ", 10_000),
            ("=-", 10_000),
            ("A", 10_000),
            ("| name of the column | another value | number |\n", 300),
            ("  <tr><td>Name of it</td><td>Value</td><td>Unit, why</td></tr>\n", 300),
            ("    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,\n", 300),
            ("    [false, true, false, false, true, false, false, true],\n", 300),
            ("\n\n    \t\n", 3_000),
            ("Greeted, at great length. ", 300),
            (
                "the same piece, but only three times, whatever its length may be, which is enough for a text that says it\n",
                3,
            ),
        ] {
            let text = what.repeat(times);
            assert_eq!(written(&text, 61), (text.clone(), None), "{what:?}");
            let text = format!("{text}and an end that is another one: {what}");
            assert_eq!(written(&text, usize::MAX).1, None, "{what:?}");
        }
    }

    /// Ordinary texts: sources and documents of this project.
    const SOURCES: [&str; 8] = [
        include_str!("repetition.rs"),
        include_str!("decode/files.rs"),
        include_str!("decode/lenient.rs"),
        include_str!("../evidence/failures/patterns.rs"),
        include_str!("../evidence/failures/tests.rs"),
        include_str!("../web/pages/assets/style.css"),
        include_str!("../../docs/reference/keys.md"),
        include_str!("../../CHANGELOG.md"),
    ];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn no_ordinary_text_is_ended(source in 0..SOURCES.len(), start in 0.0..1.0_f64, length in 1_000_usize..20_000, size in 1_usize..900) {
            let letters: Vec<char> = SOURCES[source].chars().collect();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss, reason = "a share of a length")]
            let start = (letters.len() as f64 * start) as usize;
            let text: String = letters[start..].iter().take(length).collect();
            prop_assert_eq!(written(&text, size).1, None);
        }

        #[test]
        fn whatever_is_repeated_ends_the_reply(
            before in "[a-zA-Z0-9 .,(){}=\n]{0,600}",
            rest in proptest::collection::vec(proptest::char::ranges(vec!['a'..='z', ' '..='@', 'あ'..='ん'].into()), 28..=1_488),
            size in 1_usize..700,
        ) {
            // The beginning makes it a piece that is not itself made of shorter ones.
            let piece: String = "abcdefghijk\n".chars().chain(rest).collect();
            let text = format!("{before}{}", piece.repeat(3_000 / piece.chars().count() + 8));
            let (kept, repetition) = written(&text, size);
            let repetition = repetition.ok_or_else(|| TestCaseError::fail("it was not noticed"))?;
            prop_assert_eq!(repetition.piece.chars().count(), piece.chars().count());
            prop_assert!(repetition.times >= FEWEST_TIMES);
            // The cut is behind the first occurrence: earlier by what stands before it as well, or
            // later by the rest of a line.
            prop_assert!(text.starts_with(&kept), "{kept:?}");
            prop_assert!((piece.len()..before.len() + 2 * piece.len()).contains(&kept.len()));
        }

        #[test]
        fn no_text_makes_it_panic(parts in proptest::collection::vec(("(é|あ|😀|ab|\n|-){0,40}", 1_usize..200), 0..8)) {
            let text: String = parts.iter().map(|(part, times)| part.repeat(*times)).collect();
            let (kept, repetition) = written(&text, 300);
            prop_assert!(text.starts_with(&kept));
            if let Some(repetition) = repetition {
                prop_assert!(kept.len() >= repetition.piece.len() && repetition.times >= FEWEST_TIMES);
            }
        }
    }

    /// Looking at a reply of two million characters takes moments, whatever is in it.
    #[test]
    fn looking_costs_little() {
        let begun = std::time::Instant::now();
        for piece in ["-", "ab", "0x00, ", "word and another\n"] {
            let text = piece.repeat(500_000 / piece.len());
            let (mut watch, mut written) = (Watch::default(), String::new());
            for part in text.as_bytes().chunks(4) {
                written.push_str(&String::from_utf8_lossy(part));
                watch.look(&mut written);
            }
        }
        assert!(
            begun.elapsed() < std::time::Duration::from_secs(20),
            "{:?}",
            begun.elapsed()
        );
    }
}
