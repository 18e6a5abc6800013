//! From a question to the places that answer it, with their text.

mod question; // what a question names
mod mentions; // how much a question names a path
mod ranking; // which files and places answer best
mod scoring; // places and paths by their words
mod reranking; // the best places again, by their meaning

use std::collections::HashMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::tree::Tree;
use super::{Index, IndexError};
use crate::plain::counted;
use crate::repository::CommitId;
use crate::secret::Redactor;
use crate::syntax::{Kind, words};
use question::Question;
pub(super) use ranking::is_test;
use ranking::{Defined, Findings, Ranked, rank};
pub use reranking::Reranker;
use scoring::Word;

/// Number of places in an answer to a question that names none.
pub const PLACES: usize = 8;
/// Most places in an answer to another program.
const MOST_PLACES: usize = 50;
/// Most characters of a question of another program.
const LONGEST_QUESTION: usize = 20_000;
/// Words of a question that are searched for: the rarest. The others stand everywhere.
const MOST_WORDS: usize = 48;
/// How often a word counts at most that a question repeats.
const MOST_TIMES: usize = 3;
/// Places that are looked at, by the words of the question and by those of its first line.
const MOST_FOUND: usize = 600;
/// Places of one file in an answer.
const PER_FILE: usize = 3;
/// Lines and bytes of the text of a place.
const MOST_LINES: usize = 60;
const MOST_BYTES: usize = 4 * 1024;
/// Lines before and behind a place that its secrets are looked for with: the longest of usual keys
/// have about a hundred.
const AROUND: usize = 128;

/// The parameters of a search.
pub struct Wanted<'w> {
    pub question: &'w str,
    pub top_k: usize,
    /// Only paths that begin with this; empty for all.
    pub path_prefix: &'w str,
    /// Tells whether a file may be shown.
    pub takes: &'w (dyn Fn(&str) -> bool + Send + Sync),
    /// Takes the secrets out of the texts before they are cut.
    pub redactor: &'w Redactor,
}

/// A place that answers a question.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Hit {
    pub path: String,
    /// First and last line as `L3-L9`.
    pub span: String,
    #[serde(skip)]
    pub first: usize,
    #[serde(skip)]
    pub last: usize,
    /// Name of the definition, with the class around it; empty for lines outside of definitions.
    pub name: String,
    pub kind: String,
    pub score: f64,
    pub text: String,
}

/// Returns how many places another program gets that asked for so many.
pub fn places(asked: Option<usize>) -> usize {
    asked.unwrap_or(PLACES).clamp(1, MOST_PLACES)
}

/// Checks the question of another program; the error says what is wrong with it.
pub fn check_query(query: &str) -> Result<(), String> {
    if query.trim().is_empty() || query.chars().count() > LONGEST_QUESTION {
        return Err(format!("`query` must have 1 to {LONGEST_QUESTION} characters"));
    }
    Ok(())
}

impl Index {
    /// Returns the places of a commit that answer a question best.
    pub async fn search(&self, commit: &CommitId, wanted: &Wanted<'_>) -> Result<Vec<Hit>, IndexError> {
        let tree = self.tree(commit).await?;
        let question = Question::read(wanted.question);
        let findings = self.find(&question, &tree).await?;
        let left_out = self.left_out();
        let takes = |path: &str| path.starts_with(wanted.path_prefix) && !left_out.holds(path) && (wanted.takes)(path);
        let mut ranked = rank(&tree, &question, &findings, &takes, PER_FILE);
        let Some(reranker) = self.reranker() else {
            ranked.truncate(wanted.top_k);
            return self.shown(&tree, &ranked, wanted.redactor).await;
        };
        ranked.truncate(wanted.top_k.max(reranking::MOST));
        let hits = self.shown(&tree, &ranked, wanted.redactor).await?;
        let mut hits = reranker.reordered(wanted.question, hits).await;
        hits.truncate(wanted.top_k);
        Ok(hits)
    }

    async fn find(&self, question: &Question, tree: &Tree) -> Result<Findings, IndexError> {
        let words = question.words.keys().chain(question.title.keys());
        let words: Vec<&str> = words.map(String::as_str).collect();
        let lists = self.lists(&words).await?;
        let counts = lists.counts(tree);
        let best = best_words(&question.words, &counts);
        let mut title: Vec<Word<'_>> = question.title.keys().map(|word| (word.as_str(), 1)).collect();
        title.sort_unstable();
        let weights = lists.weights(best.iter().chain(&title).map(|(word, _)| *word), tree);
        Ok(Findings {
            places: weights.best(&best, tree, MOST_FOUND),
            by_title: weights.best(&title, tree, MOST_FOUND),
            definitions: defined(question, tree),
            paths: scoring::by_path(&best, tree),
        })
    }

    /// Returns ranked places with their names and texts.
    async fn shown(&self, tree: &Tree, ranked: &[Ranked], redactor: &Redactor) -> Result<Vec<Hit>, IndexError> {
        let mut hits = Vec::new();
        let mut hits_of: HashMap<&str, Vec<usize>> = HashMap::new();
        for found in ranked {
            let Some(file) = tree.files.get(found.file) else {
                continue;
            };
            hits_of.entry(tree.object(file)).or_default().push(hits.len());
            let place = found.place.and_then(|place| tree.place(place));
            let (first, last) = place.map_or((1, 1), |place| (place.first, place.last));
            hits.push(Hit {
                path: file.path.clone(),
                span: format!("L{first}-L{last}"),
                first,
                last,
                name: place.map_or_else(String::new, |place| qualified(place.parent, place.name)),
                kind: place.map_or("file", |place| place.kind.name()).to_owned(),
                score: (found.score * 1_000.0).round() / 1_000.0,
                text: String::new(),
            });
        }
        // A file that was not read has no text, and no id.
        let objects: Vec<&str> = hits_of.keys().copied().filter(|object| !object.is_empty()).collect();
        self.texts()
            .each(&objects, |object, content| {
                let text = String::from_utf8_lossy(content);
                for at in hits_of.get(object).into_iter().flatten() {
                    if let Some(hit) = hits.get_mut(*at) {
                        hit.text = excerpt(&text, hit.first, hit.last, redactor);
                    }
                }
            })
            .await?;
        Ok(hits)
    }
}

/// Returns some lines of a text without secrets; the end of many is left out, and that is said.
/// They are cleaned first, with the lines around them: nobody recognises the part of a secret that
/// a cut leaves.
fn excerpt(text: &str, first: usize, last: usize, redactor: &Redactor) -> String {
    let before = first.saturating_sub(1);
    let begin = before.saturating_sub(AROUND);
    let lines = text.lines().skip(begin).take((last + AROUND).saturating_sub(begin));
    let around = lines.fold(String::new(), |around, line| around + line + "\n");
    let clean = redactor.clean_in_lines(&around);
    let lines = clean.as_str().lines().skip(before - begin);
    let lines: Vec<&str> = lines.take((last + 1).saturating_sub(first)).collect();
    let mut shown = String::new();
    for (taken, line) in lines.iter().enumerate() {
        if taken == MOST_LINES || shown.len() + line.len() > MOST_BYTES {
            let _ = writeln!(shown, "[{}]", counted(lines.len() - taken, "more line"));
            break;
        }
        shown.push_str(line);
        shown.push('\n');
    }
    shown
}

/// Returns a name with the class or module around it.
pub(super) fn qualified(parent: &str, name: &str) -> String {
    match parent {
        "" => name.to_owned(),
        parent => format!("{parent}.{name}"),
    }
}

/// Returns the words of a question that tell most, rare ones and those that it repeats, each with
/// how often it counts.
fn best_words<'q>(words: &'q HashMap<String, usize>, counts: &HashMap<&str, usize>) -> Vec<Word<'q>> {
    let known = words.iter().filter_map(|(word, count)| {
        let places = counts.get(word.as_str()).copied().unwrap_or_default();
        #[expect(clippy::cast_precision_loss, reason = "counts of words and places")]
        let (of, count) = (places as f64, *count as f64);
        let weight = 1.0 + count.ln();
        let times = if weight < 1.5 {
            1
        } else if weight < 2.5 {
            2
        } else {
            MOST_TIMES
        };
        (places > 0).then(|| (weight / (1.0 + of).ln(), (word.as_str(), times)))
    });
    let mut weighed: Vec<(f64, Word<'q>)> = known.collect();
    weighed.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    weighed.truncate(MOST_WORDS);
    weighed.into_iter().map(|(_, word)| word).collect()
}

/// Returns where the commit defines what the question names.
fn defined(question: &Question, tree: &Tree) -> Vec<Defined> {
    let names = question.identifiers.iter();
    let places = names.flat_map(|name| tree.named(name).map(move |found| (name, found)));
    let of_code = places.filter(|(_, (_, _, place))| !matches!(place.kind, Kind::Section | Kind::Key));
    of_code
        .map(|(name, (place, content, _))| Defined {
            name: name.clone(),
            place,
            content,
        })
        .collect()
}

/// Returns the words of a name that a part of it would have, for searches by parts of names.
pub(super) fn is_part(text: &str) -> bool {
    text.chars().count() >= 3 && words::identifiers(text).len() == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_program_asks_and_is_answered_within_bounds() {
        assert_eq!([None, Some(0), Some(3), Some(1_000)].map(places), [8, 1, 3, 50]);
        let long = "あ".repeat(20_000);
        assert_eq!(check_query(&long), Ok(()));
        for query in [" \n", &format!("{long}.")] {
            assert!(check_query(query).is_err());
        }
    }
}
