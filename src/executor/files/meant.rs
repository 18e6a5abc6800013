//! Finds what a model means by text that does not occur in a file word for word, if only one place
//! can be meant; else the lines that are most like it.
//!
//! Models copy the line numbers that they were shown into the text, and lose white space at the end
//! of lines. Anything else is not guessed: the lines of the file are shown instead.

use std::fmt::Write as _;

use crate::executor::text::{self, Replaced};

/// Separators behind a line's number, as the program and others print them.
const SEPARATORS: [&str; 6] = [": ", ":", "\t", " | ", "| ", "|"];
/// Least likeness of two lines that count as alike.
const LIKENESS: f64 = 0.5;
/// Most lines that are shown, and most bytes of one.
const MOST_SHOWN: usize = 12;
const LONGEST_SHOWN: usize = 200;
/// Most lines that are compared; each comparison takes microseconds.
const MOST_COMPARED: usize = 5_000;

/// Replaces the text that `old` means, if that occurs exactly once.
pub(super) fn replace(whole: &str, old: &str, new: &str) -> Replaced {
    let exact = text::replace_once(whole, old, new);
    if exact != Replaced::Nowhere {
        return exact;
    }
    for separator in SEPARATORS {
        let Some(bare) = without_numbers(old, separator) else {
            continue;
        };
        let new = without_numbers(new, separator).unwrap_or_else(|| new.to_owned());
        let replaced = text::replace_once(whole, &bare, &new);
        if matches!(replaced, Replaced::Once { .. }) {
            return replaced;
        }
    }
    by_lines(whole, old, new).unwrap_or(Replaced::Nowhere)
}

/// Returns `text` without the number that each of its lines begins with; `None` if these are not
/// consecutive numbers.
fn without_numbers(text: &str, separator: &str) -> Option<String> {
    let mut bare = String::new();
    let mut expected = None;
    for line in text.split_inclusive('\n') {
        let (number, rest) = line.trim_start().split_once(separator)?;
        let number: u64 = number.trim_end().parse().ok()?;
        if expected.is_some_and(|expected| number != expected) {
            return None;
        }
        expected = number.checked_add(1);
        bare.push_str(rest);
    }
    expected.is_some().then_some(bare)
}

/// Replaces the only whole lines that differ from `old` by nothing but white space at their ends.
fn by_lines(whole: &str, old: &str, new: &str) -> Option<Replaced> {
    let wanted: Vec<&str> = old.lines().map(str::trim_end).collect();
    if wanted.iter().all(|line| line.is_empty()) {
        return None;
    }
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let fits = |first: &usize| {
        lines[*first..*first + wanted.len()]
            .iter()
            .zip(&wanted)
            .all(|(line, wanted)| line.trim_end() == *wanted)
    };
    let mut places = (0..(lines.len() + 1).saturating_sub(wanted.len())).filter(fits);
    let (first, None) = (places.next()?, places.next()) else {
        return None;
    };
    let start: usize = lines[..first].iter().map(|line| line.len()).sum();
    let mut end: usize = start
        + lines[first..first + wanted.len()]
            .iter()
            .map(|line| line.len())
            .sum::<usize>();
    if !old.ends_with('\n') {
        end = start + whole[start..end].trim_end_matches(['\r', '\n']).len();
    }
    let new = text::with_line_ends_of(whole, new);
    Some(Replaced::Once {
        text: format!("{}{new}{}", &whole[..start], &whole[end..]),
        line: first + 1,
    })
}

/// Returns the lines of `whole` that are most like `wanted`, with their numbers; the whole of a
/// short file. `None` if nothing is like it.
pub(super) fn closest(whole: &str, wanted: &str) -> Option<String> {
    let lines: Vec<&str> = whole.lines().collect();
    if lines.len() <= MOST_SHOWN {
        return Some(numbered(&lines, 0));
    }
    let wanted: Vec<&str> = wanted.lines().map(str::trim).collect();
    // The longest line says most about the place.
    let (offset, telling) = wanted.iter().enumerate().max_by_key(|(_, line)| line.len())?;
    let likeness = |line: &str| {
        let line = line.trim();
        if line == *telling {
            1.0
        } else {
            strsim::sorensen_dice(line, telling)
        }
    };
    let compared = lines.iter().take(MOST_COMPARED).map(|line| likeness(line));
    let (place, most) = compared
        .enumerate()
        .max_by(|one, other| one.1.total_cmp(&other.1).then(other.0.cmp(&one.0)))?;
    if most < LIKENESS {
        return None;
    }
    let count = (wanted.len() + 2).min(MOST_SHOWN);
    let first = place.saturating_sub(offset + 1).min(lines.len() - count);
    // What is shown must hold the line that was found.
    let first = first.max((place + 1).saturating_sub(count));
    Some(numbered(&lines[first..first + count], first))
}

fn numbered(lines: &[&str], first: usize) -> String {
    lines.iter().enumerate().fold(String::new(), |mut text, (place, line)| {
        let line = &line[..line.floor_char_boundary(LONGEST_SHOWN)];
        let _ = write!(text, "\n{}: {line}", first + place + 1);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn replaced(whole: &str, old: &str, new: &str) -> Option<String> {
        match replace(whole, old, new) {
            Replaced::Once { text, .. } => Some(text),
            Replaced::Nowhere | Replaced::Several(_) => None,
        }
    }

    #[test]
    fn line_numbers_that_were_copied_are_left_out() {
        for (old, new) in [
            ("2: b", "2: x"),
            ("2:b", "x"),
            ("     2\tb", "     2\tx"),
            (" 2 | b", "x"),
        ] {
            assert_eq!(replaced("a\nb\nc\n", old, new).as_deref(), Some("a\nx\nc\n"), "{old}");
        }
        assert_eq!(
            replaced("a\nb\nc\n", "2: b\n3: c", "2: y\n3: z").as_deref(),
            Some("a\ny\nz\n")
        );
        // These are no numbers of lines.
        assert_eq!(replaced("a\nb\nc\n", "2: b\n7: c", "x"), None);
        assert_eq!(replaced("a: 1\nb\n", "1: a: 1", "x").as_deref(), Some("x\nb\n"));
        // Two places could be meant.
        assert_eq!(replaced("b\nb\n", "2: b", "x"), None);
    }

    #[test]
    fn white_space_at_the_end_of_lines_does_not_count_where_only_one_place_fits() {
        assert_eq!(replaced("a  \nb\t\nc\n", "a\nb", "x").as_deref(), Some("x\nc\n"));
        assert_eq!(replaced("a\nb\nc\n", "a \nb  \n", "x\n").as_deref(), Some("x\nc\n"));
        assert_eq!(replaced("a \r\nb\r\n", "a\nb", "x\ny").as_deref(), Some("x\r\ny\r\n"));
        assert_eq!(replaced("a \nb\na \nb\n", "a\nb", "x"), None);
        assert_eq!(replaced("\n\n", " \n", "x"), None);
    }

    #[test]
    fn the_lines_that_are_most_like_it_are_shown_with_their_numbers() {
        let lines: Vec<String> = (1..=40)
            .map(|line| format!("    value_{line} = compute({line})"))
            .collect();
        let whole = lines.join("\n");
        assert_eq!(
            closest(&whole, "value_20 = computed(20)\nreturn value_20").unwrap(),
            "\n19:     value_19 = compute(19)\n20:     value_20 = compute(20)\n21:     value_21 = compute(21)\n22:     value_22 = compute(22)"
        );
        assert_eq!(closest(&whole, "nothing of the kind"), None);
        assert_eq!(closest("a\nb\n", "z").unwrap(), "\n1: a\n2: b");
        assert_eq!(closest(&whole, ""), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(whole in "[ab:12 \n\r\té]{0,80}", old in "[ab:12 \n\r\té]{0,20}") {
            let _ = replace(&whole, &old, "x");
            let long = format!("{whole}{}", "line\n".repeat(15));
            if let Some(shown) = closest(&long, &old) {
                prop_assert!(shown.lines().count() <= MOST_SHOWN + 1);
            }
        }
    }
}
