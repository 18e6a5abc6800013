//! The ranking of files and places that answer a question, from what its words and names found.

use std::cell::RefCell;
use std::collections::HashMap;

use super::mentions::Mentions;
use super::question::Question;
use crate::index::tree::{File, Tree};
use crate::syntax::Language;

// The weights were chosen on one half of real issues and confirmed on the other, which is in
// docs/performance.md; `make bench-index` shows what becomes of another choice.

/// Weights of the best, second-best ... place of a file in the file's score by words.
const FURTHER_PLACES: [f64; 4] = [1.0, 0.5, 0.35, 0.15];
/// Weights of mentions of names, where the words of the best file weigh 1.
const OF_DEFINITION: f64 = 0.2;
const MOST_OF_DEFINITIONS: f64 = 0.5;
const OF_PATH_WORDS: f64 = 0.25;
/// Weight of defining a name of the question, where the best place by words weighs 1.
const OF_DEFINING: f64 = 0.2;
/// Weight of the words of the first line, beside those of the whole question.
const OF_TITLE: f64 = 0.75;
/// Factors for files of tests and of prose, where code has 1, unless the question asks for them.
const TESTS: f64 = 0.4;
const PROSE: f64 = 0.5;
/// Factor for a file beside the program: an example, a benchmark, a script of the project.
const BESIDE: f64 = 0.7;

/// A place that has words of the question.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    /// Number of the place in the commit, and number of the content that it belongs to.
    pub(super) place: usize,
    pub(super) content: usize,
    pub(super) score: f64,
}

/// A name of the question that is defined somewhere.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Defined {
    pub(super) name: String,
    pub(super) place: usize,
    pub(super) content: usize,
}

/// The places, definitions and paths that were found for a question.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Places by the words of the whole question, best first.
    pub(super) places: Vec<Found>,
    /// Places by the words of its first line, best first.
    pub(super) by_title: Vec<Found>,
    pub(super) definitions: Vec<Defined>,
    /// Score of files by the words in their paths.
    pub(super) paths: HashMap<usize, f64>,
}

/// A place of a file, with the score among all.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ranked {
    pub(super) place: Option<usize>,
    pub(super) file: usize,
    pub(super) score: f64,
}

/// The files that may be shown. Each is asked about once, since rules of a project are many
/// patterns.
struct Taken<'t> {
    takes: &'t dyn Fn(&str) -> bool,
    known: RefCell<HashMap<usize, bool>>,
}

impl<'t> Taken<'t> {
    fn of(takes: &'t dyn Fn(&str) -> bool) -> Self {
        Self {
            takes,
            known: RefCell::default(),
        }
    }

    /// True if the file with this number may be shown.
    fn has(&self, number: usize, file: &File) -> bool {
        let mut known = self.known.borrow_mut();
        *known.entry(number).or_insert_with(|| (self.takes)(&file.path))
    }
}

/// Returns the places in the order in which they answer, at most `per_file` of each file.
pub(super) fn rank(
    tree: &Tree,
    question: &Question,
    findings: &Findings,
    takes: &dyn Fn(&str) -> bool,
    per_file: usize,
) -> Vec<Ranked> {
    let places = joined(findings);
    let files = Taken::of(takes);
    let mut by_file: HashMap<usize, Vec<(usize, f64)>> = HashMap::new();
    for (&(place, content), &score) in &places {
        for (number, file) in tree.with_content(content) {
            if files.has(number, file) {
                by_file.entry(number).or_default().push((place, score));
            }
        }
    }
    let mentions = mentions(tree, question, findings, &files);
    for path in mentions.keys() {
        by_file.entry(*path).or_default();
    }
    let mut words: HashMap<usize, f64> = HashMap::new();
    for (path, places) in &mut by_file {
        places.sort_by(|one, other| other.1.total_cmp(&one.1).then(one.0.cmp(&other.0)));
        let sum = places
            .iter()
            .zip(FURTHER_PLACES)
            .map(|((_, score), share)| score * share)
            .sum();
        words.insert(*path, sum);
    }
    let mut ranked = Vec::new();
    let best = words.values().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (path, places) in &by_file {
        let Some(file) = tree.files.get(*path) else { continue };
        let by_words = words.get(path).copied().unwrap_or_default() / best;
        let score = (by_words + mentions.get(path).copied().unwrap_or_default()) * worth(file, question);
        ranked.extend(of_file(*path, places, score, per_file));
    }
    let name = |path: &usize| tree.files.get(*path).map_or("", |file| file.path.as_str());
    ranked.sort_by(|one, other| {
        let by_score = other.score.total_cmp(&one.score);
        by_score
            .then_with(|| name(&one.file).cmp(name(&other.file)))
            .then(one.place.cmp(&other.place))
    });
    ranked
}

/// Returns the places of a file with its score. The first stands for it; the others come behind the
/// files that are better.
fn of_file(file: usize, places: &[(usize, f64)], score: f64, most: usize) -> Vec<Ranked> {
    let Some((_, first)) = places.first() else {
        return vec![Ranked {
            place: None,
            file,
            score,
        }];
    };
    let ranked = places
        .iter()
        .take(most)
        .enumerate()
        .map(|(at, (place, of_words))| Ranked {
            place: Some(*place),
            file,
            score: if at == 0 {
                score
            } else {
                score * 0.9 * of_words / first.max(f64::MIN_POSITIVE)
            },
        });
    ranked.collect()
}

/// Returns each place with its score by the whole question and by its first line.
fn joined(findings: &Findings) -> HashMap<(usize, usize), f64> {
    let mut joined: HashMap<(usize, usize), f64> = HashMap::new();
    for (list, weight) in [(&findings.places, 1.0), (&findings.by_title, OF_TITLE)] {
        let best = list.first().map_or(1.0, |found| found.score.max(f64::MIN_POSITIVE));
        for found in list {
            *joined.entry((found.place, found.content)).or_default() += weight * found.score / best;
        }
    }
    // A definition that the question names answers it, also by few words.
    for defined in &findings.definitions {
        *joined.entry((defined.place, defined.content)).or_default() += OF_DEFINING;
    }
    joined
}

fn mentions(tree: &Tree, question: &Question, findings: &Findings, taken: &Taken<'_>) -> HashMap<usize, f64> {
    let mut scores: HashMap<usize, f64> = HashMap::new();
    let mentions = Mentions::of(question);
    for (number, file) in tree.files.iter().enumerate() {
        let mentioned = mentions.worth(&file.path);
        if mentioned > 0.0 && taken.has(number, file) {
            *scores.entry(number).or_default() += mentioned;
        }
    }
    let best = findings.paths.values().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (path, score) in &findings.paths {
        if tree.files.get(*path).is_some_and(|file| taken.has(*path, file)) {
            *scores.entry(*path).or_default() += OF_PATH_WORDS * score / best;
        }
    }
    let mut files_of: HashMap<&str, Vec<usize>> = HashMap::new();
    for defined in &findings.definitions {
        let files = files_of.entry(defined.name.as_str()).or_default();
        for (path, file) in tree.with_content(defined.content) {
            if !files.contains(&path) && taken.has(path, file) && !is_test(&file.path) {
                files.push(path);
            }
        }
    }
    let mut of_definitions: HashMap<usize, f64> = HashMap::new();
    for files in files_of.values() {
        for path in files {
            #[expect(clippy::cast_precision_loss, reason = "a count of files")]
            let share = OF_DEFINITION / files.len() as f64;
            *of_definitions.entry(*path).or_default() += share;
        }
    }
    for (path, score) in of_definitions {
        *scores.entry(path).or_default() += score.min(MOST_OF_DEFINITIONS);
    }
    scores
}

/// Returns how much a file is worth beside one of code.
fn worth(file: &File, question: &Question) -> f64 {
    let language = Language::of(&file.path);
    if is_test(&file.path) {
        let is_asked_for = question.title.keys().any(|word| word == "test" || word == "tests");
        return if is_asked_for { 0.9 } else { TESTS };
    }
    if !language.is_code() {
        return PROSE;
    }
    if is_beside(&file.path) { BESIDE } else { 1.0 }
}

/// True for a file of code that is not part of what the repository is about, by its path.
fn is_beside(path: &str) -> bool {
    let (top, _) = path.split_once('/').unwrap_or(("", path));
    let name = path.rsplit('/').next().unwrap_or(path);
    let folders = [
        "doc",
        "docs",
        "example",
        "examples",
        "bench",
        "benchmarks",
        "asv_bench",
        "scripts",
        "tools",
        "extra",
        "ci",
    ];
    folders.contains(&top) || matches!(name, "setup.py" | "conf.py")
}

/// True for a file of tests, by its path.
pub(in crate::index) fn is_test(path: &str) -> bool {
    path.split('/').any(|part| {
        let stem = part.split('.').next().unwrap_or(part);
        matches!(part, "test" | "tests" | "testing" | "spec" | "__tests__" | "testdata")
            || stem.starts_with("test_")
            || stem.ends_with("_test")
            || stem.ends_with("Test")
            || part.contains(".test.")
            || part.contains(".spec.")
    })
}
