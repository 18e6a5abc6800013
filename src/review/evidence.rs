//! Decides which blockers count: those with evidence that the program can check.
//!
//! Reviewers invent blockers, and invent new ones in every round. A blocker counts if it names a
//! line that exists, and that has about it what the blocker says to stand there, a command of the
//! document or one of its criteria; from the second round on only if that changed since the round
//! before, or the blocker was there already. All others are shown, and block nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Blocker;
use super::document::Document;
use crate::plain::one_line;
use crate::plan::evidence::Citation;
use crate::syntax::cited;

/// The places, commands and criteria that evidence can name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Known {
    /// The texts of the cited files that exist, see [`cited_paths`].
    pub files: BTreeMap<String, String>,
    /// The commit that they are of.
    pub commit: String,
    /// The commands of the document.
    pub commands: Vec<String>,
    /// The criteria by which the work is judged, in their order.
    pub criteria: Vec<String>,
}

/// A place in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Place {
    pub path: String,
    pub first: u32,
    pub last: u32,
}

/// Maximum size of a cited file that is read, and of all of them.
pub const LARGEST_FILE: u64 = 4 * 1024 * 1024;
pub const MOST_BYTES: u64 = 8 * LARGEST_FILE;
/// Lines before and behind a cited place in which a name may stand: reviewers cite a line of the
/// function that they speak of.
const NEAR: usize = 30;
/// Most characters of a criterion's number: "criterion 12".
const MOST_DIGITS: usize = 3;
/// A shorter criterion is found in too many texts.
const SHORTEST_CRITERION: usize = 8;
/// Words before the number of a criterion.
const CRITERION: [&str; 6] = [
    "criterion",
    "criteria",
    "success_criteria",
    "success_criterion",
    "基準",
    "条件",
];

impl Place {
    /// Reads `path:12`, `path:12-20`, `path#L12` or `path#L12-L20`.
    pub fn read(text: &str) -> Option<Self> {
        let (path, lines) = text.rsplit_once("#L").or_else(|| text.rsplit_once(':'))?;
        let line = |text: &str| {
            text.trim_start_matches('L')
                .parse::<u32>()
                .ok()
                .filter(|line| *line > 0)
        };
        let (first, last) = match lines.split_once(['-', '–']) {
            Some((first, last)) => (line(first)?, line(last)?),
            None => (line(lines)?, line(lines)?),
        };
        let path = path.trim_start_matches("./");
        let is_path = !path.is_empty() && !path.contains("://") && !path.ends_with(['/', ':']) && first <= last;
        is_path.then(|| Self {
            path: path.to_owned(),
            first,
            last,
        })
    }

    /// Returns the place as a plan cites one.
    pub fn citation(&self) -> Citation {
        Citation {
            path: self.path.clone(),
            lines: format!("{}-{}", self.first, self.last),
            why: String::new(),
        }
    }
}

/// Returns the paths that blockers cite, for [`Known::lines`].
pub fn cited_paths(blockers: &[Blocker]) -> BTreeSet<String> {
    let places = blockers.iter().flat_map(places);
    places.map(|(place, _)| place.path).collect()
}

/// Returns the places that blockers name and that are there, each once.
pub fn found(blockers: &[Blocker], known: &Known) -> BTreeSet<Place> {
    let named = blockers.iter().flat_map(places);
    let there = named.filter(|(place, text)| is_there(place, text, known));
    there.map(|(place, _)| place).collect()
}

/// Returns those of the places that a blocker names.
pub fn named_by<'p>(blocker: &Blocker, found: &'p BTreeSet<Place>) -> Vec<&'p Place> {
    let named: BTreeSet<Place> = places(blocker).into_iter().map(|(place, _)| place).collect();
    found.iter().filter(|place| named.contains(place)).collect()
}

/// Splits blockers into those that count and those that do not. `earlier` are those that counted in
/// the round before, with its document; `None` in the first round.
pub fn weigh(
    blockers: Vec<Blocker>,
    document: &Document,
    known: &Known,
    earlier: Option<(&[Blocker], &BTreeSet<String>)>,
) -> (Vec<Blocker>, Vec<Blocker>) {
    let before = earlier.map(|(blockers, parts)| {
        let named: BTreeSet<String> = blockers.iter().flat_map(|blocker| proofs(blocker, known)).collect();
        (blockers, named, document.changed_since(parts))
    });
    blockers.into_iter().partition(|blocker| {
        let proofs = proofs(blocker, known);
        let Some((earlier, named, changed)) = &before else {
            return !proofs.is_empty();
        };
        let is_carried_over = earlier.iter().any(|before| before.claim == blocker.claim) || !proofs.is_disjoint(named);
        let is_about_a_change = proofs
            .iter()
            .any(|proof| changed.iter().any(|part| part.contains(proof)));
        !proofs.is_empty() && (is_carried_over || is_about_a_change)
    })
}

/// Returns what a blocker names and the program can find: paths, commands, criteria.
fn proofs(blocker: &Blocker, known: &Known) -> BTreeSet<String> {
    let mut proofs: BTreeSet<String> = places(blocker)
        .into_iter()
        .filter(|(place, text)| is_there(place, text, known))
        .map(|(place, _)| place.path)
        .collect();
    for text in texts(blocker) {
        let spoken = squeezed(text);
        let spans = text.split('`').skip(1).step_by(2).map(squeezed);
        let whole = [spoken.clone()];
        for span in spans.chain(whole) {
            proofs.extend(
                known
                    .commands
                    .iter()
                    .filter(|command| !span.is_empty() && squeezed(command) == span)
                    .cloned(),
            );
        }
        let named = numbers_of_criteria(&spoken);
        for (number, criterion) in known.criteria.iter().enumerate() {
            let wording = squeezed(criterion);
            let is_quoted = wording.chars().count() >= SHORTEST_CRITERION && spoken.contains(&wording);
            if is_quoted || named.contains(&(number + 1)) {
                proofs.insert(criterion.clone());
            }
        }
    }
    proofs
}

fn is_there(place: &Place, text: &str, known: &Known) -> bool {
    let file = known.files.get(&place.path);
    file.is_some_and(|file| holds(file, place, text))
}

/// True if a file has the lines of a place, and near them one of the names that the text about it
/// has in backticks.
fn holds(file: &str, place: &Place, text: &str) -> bool {
    let line = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    let (first, last) = (line(place.first), line(place.last));
    if last > file.lines().count() {
        return false;
    }
    let begin = first.saturating_sub(1 + NEAR);
    let lines = file.lines().skip(begin).take((last + NEAR).saturating_sub(begin));
    let near = lines.collect::<Vec<_>>().join("\n");
    cited::missing(&cited::names(text, &place.path), &near).is_none()
}

fn texts(blocker: &Blocker) -> impl Iterator<Item = &str> {
    let evidence = blocker.evidence.iter().map(String::as_str);
    evidence.chain([blocker.claim.as_str(), blocker.why.as_str()])
}

/// Returns the places that a blocker names, each with the text in which it does.
fn places(blocker: &Blocker) -> Vec<(Place, &str)> {
    // A path with blanks is only known where it stands alone.
    let alone = blocker.evidence.iter().map(String::as_str);
    let whole = alone.filter_map(|text| Some((Place::read(text.trim())?, text)));
    let words = texts(blocker).flat_map(|text| named(text).map(move |place| (place, text)));
    whole.chain(words).collect()
}

/// Returns the places that a text names, in their order.
pub fn named(text: &str) -> impl Iterator<Item = Place> {
    let is_border = |letter: char| letter.is_whitespace() || "`'\"()（）[]「」『』、。,;<>*".contains(letter);
    let words = text.split(is_border);
    words.filter_map(|word| Place::read(word.trim_end_matches(['.', ':', '!', '?'])))
}

/// Returns the text in small letters, with single blanks.
fn squeezed(text: &str) -> String {
    one_line(&text.to_lowercase())
}

fn numbers_of_criteria(text: &str) -> Vec<usize> {
    let mut numbers = Vec::new();
    for word in CRITERION {
        for (at, _) in text.match_indices(word) {
            let rest = text[at + word.len()..].trim_start_matches([' ', '#', '[', ':', '　']);
            let digits: String = rest
                .chars()
                .take_while(char::is_ascii_digit)
                .take(MOST_DIGITS + 1)
                .collect();
            if digits.len() <= MOST_DIGITS {
                numbers.extend(digits.parse::<usize>());
            }
        }
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocker(claim: &str, evidence: &[&str]) -> Blocker {
        Blocker {
            claim: claim.to_owned(),
            evidence: evidence.iter().map(|&text| text.to_owned()).collect(),
            why: String::new(),
        }
    }

    fn known() -> Known {
        Known {
            files: BTreeMap::from([
                ("src/app.py".to_owned(), "x = 1\n".repeat(39) + "greet()\n"),
                ("a b.txt".to_owned(), "a\nb\nc\n".to_owned()),
            ]),
            commit: String::new(),
            commands: vec!["make  test".to_owned(), "pytest -q".to_owned(), String::new()],
            criteria: vec!["The report is sorted".to_owned(), "短い基準".to_owned()],
        }
    }

    #[test]
    fn places_are_read_in_their_forms() {
        let place = |path: &str, first, last| {
            Some(Place {
                path: path.to_owned(),
                first,
                last,
            })
        };
        for (text, expected) in [
            ("src/app.py:12", place("src/app.py", 12, 12)),
            ("./src/app.py:12-20", place("src/app.py", 12, 20)),
            ("src/app.py#L3", place("src/app.py", 3, 3)),
            ("src/app.py#L3-L9", place("src/app.py", 3, 9)),
            ("src/app.py:L3-9", place("src/app.py", 3, 9)),
            ("日本/語.md:1", place("日本/語.md", 1, 1)),
            ("src/app.py", None),
            ("src/app.py:0", None),
            ("src/app.py:9-3", None),
            (":3", None),
            ("https://example.test:443", None),
            ("a:b", None),
        ] {
            assert_eq!(Place::read(text), expected, "{text}");
        }
    }

    #[test]
    fn places_are_shown_with_the_blocker_that_names_them_where_they_are_there() {
        let one = blocker("wrong", &["src/app.py:12, then src/app.py:99", "a b.txt:2-3"]);
        let other = blocker("see `src/app.py:40`", &["make test"]);
        let found = found(&[one.clone(), other.clone()], &known());
        let shown = |blocker: &Blocker| {
            let places = named_by(blocker, &found).into_iter();
            places.map(|place| place.citation().place()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&one), ["a b.txt:2-3", "src/app.py:12"]);
        assert_eq!(shown(&other), ["src/app.py:40"]);
        assert_eq!(shown(&blocker("none", &["src/app.py:1"])), Vec::<String>::new());
    }

    #[test]
    fn a_blocker_counts_with_evidence_that_is_there() {
        for (blocker, counts) in [
            (blocker("wrong import", &["src/app.py:12"]), true),
            (blocker("`src/app.py:40` is wrong.", &[]), true),
            (blocker("see (src/app.py:1-40).", &[]), true),
            (blocker("wrong import", &["a b.txt:3"]), true),
            (blocker("`greet` at src/app.py:38 fails", &[]), true),
            (
                blocker("wrong", &["src/app.py:40 calls `greet()` or `welcome()`"]),
                true,
            ),
            (blocker("wrong", &["src/app.py:40 calls `welcome()`"]), false),
            // Far from the line that is cited.
            (blocker("wrong", &["src/app.py:1: `greet` is here"]), false),
            (blocker("`welcome` is missing", &["src/app.py:40"]), true),
            (blocker("behind the end", &["src/app.py:41"]), false),
            (blocker("it is wrong", &["src/app.py:40 calls `frobnicate()`"]), false),
            (blocker("it is wrong", &["src/app.py:40 calls `greet()`"]), true),
            (blocker("no such file", &["src/other.py:1"]), false),
            (blocker("no line", &["src/app.py"]), false),
            (blocker("it cannot fail", &["make test"]), true),
            (blocker("`PYTEST -q` tests nothing", &[]), true),
            (blocker("make tests nothing", &[]), false),
            (blocker("`` tests nothing", &[]), false),
            (blocker("unknown", &["cargo test"]), false),
            (blocker("nothing checks criterion 1", &[]), true),
            (blocker("基準2を確認していません", &[]), true),
            (blocker("success_criteria[1] is open", &[]), true),
            (blocker("criterion 3", &[]), false),
            (blocker("criterion 1000000000000000000001", &[]), false),
            (blocker("nobody sees that the report is  sorted", &[]), true),
            (blocker("It could be better.", &["my experience"]), false),
            (blocker("", &[]), false),
        ] {
            let (counting, others) = weigh(vec![blocker.clone()], &Document::default(), &known(), None);
            assert_eq!(counting.len(), usize::from(counts), "{blocker:?}");
            assert_eq!(counting.len() + others.len(), 1);
        }
        let cited = cited_paths(&[blocker("`a.rs:1` and b.rs:2", &["c d.rs:3"])]);
        assert!(
            ["a.rs", "b.rs", "c d.rs"].iter().all(|path| cited.contains(*path)),
            "{cited:?}"
        );
    }

    #[test]
    fn later_rounds_take_what_changed_or_was_there_before() {
        let first = Document::of_lines("edit src/app.py\nrun make  test\n");
        let second = Document::of_lines("edit src/app.py\nrun pytest -q\n");
        let old = blocker("wrong import", &["src/app.py:12"]);
        let parts = first.fingerprints();
        let weighed = |blocker: &Blocker, earlier: &[Blocker]| {
            let (counting, _) = weigh(vec![blocker.clone()], &second, &known(), Some((earlier, &parts)));
            !counting.is_empty()
        };
        assert!(!weighed(&old, &[]), "new, and about what did not change");
        assert!(weighed(&old, std::slice::from_ref(&old)), "carried over");
        assert!(weighed(
            &blocker("in other words", &["src/app.py:13"]),
            std::slice::from_ref(&old)
        ));
        assert!(
            weighed(&blocker("it tests nothing", &["pytest -q"]), &[]),
            "about the new line"
        );
        assert!(
            !weighed(&blocker("wrong import", &["nowhere:1"]), std::slice::from_ref(&old)),
            "no evidence"
        );
    }
}
