//! The parts of a task that no test mentions: the tests lack a name, an example or a value of the
//! part, or, where it is in words alone, all of its words.
//!
//! Tests that pass say nothing of what they do not touch, and a small model is done when they pass.
//! Words are compared and not understood, so an empty list proves nothing.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::demands::Demands;
use super::language::is_code;
use super::pattern;

/// Longest name, in bytes. Longer code is a program and not a name.
const LONGEST: usize = 120;
/// Most names of one part, and most parts that are returned.
const MOST_NAMES: usize = 5;
const MOST_PARTS: usize = 5;

/// Letters of a word that is compared, at least, and most that are taken off its end: tests have it
/// in another form.
const SHORTEST_WORD: usize = 4;
const LONGEST_ENDING: usize = 3;
/// Fewest different words of a part that is compared by them.
const FEWEST_WORDS: usize = 2;
/// Words of a part that asks for something: others tell how it is.
const ASKING: [&str; 8] = ["must", "should", "shall", "need", "needs", "have to", "has to", "ought"];
/// Words that tests have whatever they test.
const OF_ANY_TEST: [&str; 24] = [
    "assert", "case", "does", "equal", "equals", "expect", "false", "from", "have", "import", "must", "none", "null",
    "only", "return", "returns", "should", "test", "tests", "that", "this", "true", "when", "with",
];

/// A part of a task that no test mentions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unmentioned {
    /// The sentence or the item of a list.
    pub part: String,
    /// The names, examples and values that it has and the tests do not; empty for a part in words
    /// alone.
    pub names: Vec<String>,
}

/// Looks for the names of a task in the tests, one file after the other.
#[derive(Debug, Default)]
pub struct Search {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    text: String,
    names: Vec<Name>,
    /// The beginnings of its words, if it has no names.
    words: Vec<String>,
    has_word_found: bool,
}

#[derive(Debug)]
struct Name {
    text: String,
    forms: Vec<Form>,
    /// Whether it is a call with values. A test that calls the same function checks something like
    /// it.
    is_example: bool,
    is_found: bool,
}

/// A form in which tests write a name.
#[derive(Debug)]
enum Form {
    /// A piece of code, compared without spaces and with one kind of quotation marks.
    Code(String),
    /// A word or a number that stands alone.
    Word(String),
    /// The name of a function, before its arguments.
    Call(String),
}

impl Search {
    pub fn of(demands: &Demands) -> Self {
        let part = |piece: &String| {
            let names = names(piece);
            Part {
                text: piece.clone(),
                words: if names.is_empty() { words(piece) } else { Vec::new() },
                names,
                has_word_found: false,
            }
        };
        let mut parts: Vec<Part> = demands.pieces.iter().map(part).collect();
        parts.retain(|part| !part.names.is_empty() || !part.words.is_empty());
        Self { parts }
    }

    /// Tells whether there is nothing to look for.
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Looks at the text of one file of the tests.
    pub fn look(&mut self, test: &str) {
        let (squeezed, small) = (squeezed(test), test.to_lowercase());
        for part in &mut self.parts {
            for name in part.names.iter_mut().filter(|name| !name.is_found) {
                name.is_found = name.forms.iter().any(|form| form.is_in(test, &squeezed));
            }
            part.has_word_found |= part.words.iter().any(|word| small.contains(word.as_str()));
        }
    }

    /// Returns the parts that were not found.
    pub fn unmentioned(self) -> Vec<Unmentioned> {
        let unmentioned = self.parts.into_iter().filter_map(|part| {
            if part.names.is_empty() {
                return (!part.has_word_found).then(|| Unmentioned {
                    part: part.text,
                    names: Vec::new(),
                });
            }
            // A part whose example was found is mentioned: its other values are mostly the wrong
            // ones of the fault.
            let is_shown = part.names.iter().any(|name| name.is_example && name.is_found);
            let missing = part.names.into_iter().filter(|name| !name.is_found);
            let names: Vec<String> = missing.map(|name| name.text).take(MOST_NAMES).collect();
            (!is_shown && !names.is_empty()).then_some(Unmentioned { part: part.text, names })
        });
        unmentioned.take(MOST_PARTS).collect()
    }
}

impl Form {
    fn is_in(&self, test: &str, squeezed: &str) -> bool {
        match self {
            Self::Code(code) => squeezed.contains(code.as_str()),
            Self::Word(word) => stands_alone(test, word),
            Self::Call(name) => {
                let is_call = |(at, _): (usize, &str)| {
                    is_boundary(test[..at].chars().next_back())
                        && test[at + name.len()..].trim_start_matches(' ').starts_with('(')
                };
                test.match_indices(name.as_str()).any(is_call)
            }
        }
    }
}

/// Returns the names, the quoted texts and the numbers of a part.
fn names(part: &str) -> Vec<Name> {
    let mut names: Vec<Name> = Vec::new();
    let mut add = |name: Option<Name>| {
        let new = name.filter(|name| names.iter().all(|known| known.text != name.text));
        names.extend(new);
    };
    // What is between backticks is every second piece.
    for (place, piece) in part.split('`').enumerate() {
        if place % 2 == 1 {
            add(code(piece.trim()));
            continue;
        }
        for (place, piece) in piece.split('"').enumerate() {
            if place % 2 == 1 {
                add(quoted(piece.trim()));
                continue;
            }
            piece.split_whitespace().for_each(|word| add(number(word)));
        }
    }
    names
}

fn named(text: &str, forms: Vec<Form>, is_example: bool) -> Option<Name> {
    (text.len() <= LONGEST).then(|| Name {
        text: text.to_owned(),
        forms,
        is_example,
        is_found: false,
    })
}

/// Returns the name in a code span; paths of files are none.
fn code(text: &str) -> Option<Name> {
    static DOTTED: LazyLock<Regex> = LazyLock::new(|| pattern(r"^(?:[^\W\d]\w*\.)*(?P<last>[^\W\d]\w*)$"));
    static CALL: LazyLock<Regex> =
        LazyLock::new(|| pattern(r"^(?:new )?(?:[^\W\d]\w*\.)*(?P<last>[^\W\d]\w*)\((?P<arguments>.*)$"));
    if is_number(text) {
        return number(text);
    }
    let is_path = text.contains('/') && !text.contains(' ') || is_code(text);
    if is_path || !text.contains(|letter: char| letter.is_alphanumeric()) {
        return None;
    }
    if let Some(parts) = DOTTED.captures(text) {
        return named(text, vec![Form::Word(parts["last"].to_owned())], false);
    }
    let whole = Form::Code(squeezed(text));
    let Some(parts) = CALL.captures(text) else {
        return named(text, vec![whole], false);
    };
    // Tests write other arguments than `retry(call, times)` or `Percent.of(1, 4)`. The latter has
    // values, so it is an example.
    let has_values = parts["arguments"].contains(|letter: char| letter.is_ascii_digit() || "\"'[{".contains(letter));
    named(text, vec![whole, Form::Call(parts["last"].to_owned())], has_values)
}

fn quoted(text: &str) -> Option<Name> {
    if !text.contains(|letter: char| letter.is_alphanumeric()) {
        return None;
    }
    named(text, vec![Form::Code(squeezed(text))], false)
}

fn number(word: &str) -> Option<Name> {
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '-');
    if !is_number(word) {
        return None;
    }
    named(word, vec![Form::Word(word.to_owned())], false)
}

fn is_number(word: &str) -> bool {
    static NUMBER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^-?\d+(?:\.\d+)?$"));
    NUMBER.is_match(word)
}

fn stands_alone(text: &str, word: &str) -> bool {
    let is_number = word.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-');
    text.match_indices(word).any(|(at, _)| {
        let (before, behind) = (&text[..at], &text[at + word.len()..]);
        let is_digit = |letter: char| letter.is_ascii_digit();
        let in_decimal = before.strip_suffix('.').is_some_and(|rest| rest.ends_with(is_digit))
            || behind.strip_prefix('.').is_some_and(|rest| rest.starts_with(is_digit));
        is_boundary(before.chars().next_back()) && is_boundary(behind.chars().next()) && !(is_number && in_decimal)
    })
}

fn is_boundary(letter: Option<char>) -> bool {
    letter.is_none_or(|letter| !letter.is_alphanumeric() && letter != '_')
}

/// Returns the beginnings of the words of a part that asks for something in English, in small
/// letters; nothing of any other.
fn words(part: &str) -> Vec<String> {
    let asks = ASKING.iter().any(|word| stands_alone(part, word));
    if !asks || part.contains('`') {
        return Vec::new();
    }
    let words = part.split(|letter: char| !letter.is_ascii_alphabetic());
    let words = words
        .map(str::to_ascii_lowercase)
        .filter(|word| word.len() >= SHORTEST_WORD);
    let beginning = |mut word: String| {
        word.truncate(word.len().saturating_sub(LONGEST_ENDING).max(SHORTEST_WORD));
        word
    };
    let words = words.filter(|word| !OF_ANY_TEST.contains(&word.as_str()));
    let words: BTreeSet<String> = words.map(beginning).collect();
    if words.len() < FEWEST_WORDS {
        return Vec::new();
    }
    words.into_iter().collect()
}

/// Returns code without spaces, and with `"` for `'`.
fn squeezed(text: &str) -> String {
    let letters = text.chars().filter(|letter| !letter.is_whitespace());
    letters
        .map(|letter| if letter == '\'' { '"' } else { letter })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn unmentioned(task: &str, tests: &[&str]) -> Vec<(String, Vec<String>)> {
        let mut search = Search::of(&Demands::of(task));
        for test in tests {
            search.look(test);
        }
        let found = search.unmentioned().into_iter();
        found.map(|unmentioned| (unmentioned.part, unmentioned.names)).collect()
    }

    fn alone(part: &str, names: &[&str]) -> Vec<(String, Vec<String>)> {
        vec![(part.to_owned(), names.iter().map(|&name| name.to_owned()).collect())]
    }

    #[test]
    fn a_value_that_no_test_has_is_named() {
        let task = "The average is always a whole number\n\n`Average([]int{1, 2})` in `average.go` returns 1 instead of 1.5. For no numbers at all it \
                    should return 0.";
        let tests = "func TestHalf(t *testing.T) {\n\tif got := Average([]int{1,2}); got != 1.5 {\n\t\tt.Errorf(\"10.0 %v\", got)\n\t}\n}\n";
        assert_eq!(
            unmentioned(task, &[tests]),
            alone("For no numbers at all it should return 0.", &["0"])
        );
        assert!(unmentioned(task, &[tests, "if got := Average(nil); got != 0 {"]).is_empty());
    }

    #[test]
    fn names_are_found_however_tests_write_them() {
        let tests = ["select(log, level='error')\nbank.undo ()\nraises(NotEnough)\nprint(\"no files\", -1)"];
        for mentioned in [
            "`select(entries, level=None, since=None)` should do the work",
            "`Editor.undo()` goes back one step",
            "`select(log, level=\"error\")` prints all lines",
            "It should raise `errors.NotEnough` from now on",
            "It should say \"no files\" and return -1",
            "See `bank/errors.py` and `bank.py` for that",
            "All in words, without any name",
        ] {
            assert_eq!(unmentioned(mentioned, &tests), [], "{mentioned}");
        }
        for (part, names) in [
            ("`selected(entries)` should do the work", ["selected(entries)"]),
            ("It should raise `Enough` from now on", ["Enough"]),
            ("It should say \"no more files\" instead", ["no more files"]),
            ("It should return 7 for nothing", ["7"]),
        ] {
            assert_eq!(unmentioned(part, &tests), alone(part, &names));
        }
    }

    #[test]
    fn a_part_in_words_is_mentioned_by_any_of_its_words() {
        let task = "The copy is shallow\n\n`copy()` copies the outer object only. What is inside should be copied as well. Dates should stay dates.";
        let tests = "test('a copy should be equal', () => { const inside = copy({ a: [1] }); })";
        assert_eq!(unmentioned(task, &[tests]), alone("Dates should stay dates.", &[]));
        assert!(unmentioned(task, &[tests, "new Date(2026)"]).is_empty());
        // What tells of the fault asks for nothing, and other languages are not compared.
        assert!(unmentioned("Dates become texts.", &[tests]).is_empty());
        assert!(unmentioned("Was drinnen ist, soll bleiben.", &[tests]).is_empty());
        assert!(unmentioned("平均が整数になる問題を直す", &[tests]).is_empty());
    }

    #[test]
    fn the_wrong_value_of_an_example_is_not_missed() {
        let task = "`best([9, 100], 2)` in `scores.js` returns `[9, 20]`: sorted as texts.";
        assert!(unmentioned(task, &["equal(best([9], 1), [9])"]).is_empty());
        assert_eq!(
            unmentioned(task, &["equal(worst([9], 1), [9])"]),
            alone(task, &["best([9, 100], 2)", "[9, 20]"])
        );
    }

    proptest! {
        #[test]
        fn a_test_with_the_whole_text_mentions_all_of_it(task in "([a-zé`\"'. (),=-]|[0-9]{1,3}|1\\.5|new | `f\\(1, a\\)` |\n- ){0,80}") {
            prop_assert_eq!(unmentioned(&task, &[&task.replace('\n', " ")]), []);
        }

        #[test]
        fn any_task_and_any_tests_are_read(task in "\\PC{0,200}", test in "\\PC{0,200}") {
            let found = unmentioned(&task, &[&test]);
            prop_assert!(found.len() <= MOST_PARTS && found.iter().all(|(_, names)| names.len() <= MOST_NAMES));
        }
    }
}
