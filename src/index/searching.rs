//! From a question to the places that answer it, with their text.

mod question; // what a question names
mod ranking; // which files and places answer best
mod reranking; // the best places again, by their meaning

use std::collections::{BTreeSet, HashMap};
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use sqlx::Row;

use super::tree::Tree;
use super::{Index, IndexError};
use crate::repository::CommitId;
use crate::syntax::words;
use question::Question;
pub(super) use ranking::is_test;
use ranking::{Defined, Findings, Found, Ranked, rank};
pub use reranking::Reranker;

/// Words of a question that are searched for: the rarest. The others stand everywhere.
const MOST_WORDS: usize = 48;
/// How often a word counts at most that a question repeats.
const MOST_TIMES: usize = 3;
/// Places that are looked at, of all commits that are kept, and of the one that is searched: the
/// others have most of it as well, in other versions.
const MOST_LOOKED_AT: i64 = 2_400;
const MOST_FOUND: usize = 600;
/// Places of one file in an answer.
const PER_FILE: usize = 3;
/// Lines and bytes of the text of a place.
const MOST_LINES: usize = 60;
const MOST_BYTES: usize = 4 * 1024;

/// A word of a question, and how often it counts.
type Word<'q> = (&'q str, usize);

/// What is wanted of a search.
pub struct Wanted<'w> {
    pub question: &'w str,
    pub top_k: usize,
    /// Only paths that begin so; empty for all.
    pub path_prefix: &'w str,
    /// Which files may be shown.
    pub takes: &'w (dyn Fn(&str) -> bool + Send + Sync),
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
    /// What is defined there, with the class around it; empty for lines outside of definitions.
    pub name: String,
    pub kind: String,
    pub score: f64,
    pub text: String,
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
            return self.shown(&tree, &ranked).await;
        };
        ranked.truncate(wanted.top_k.max(reranking::MOST));
        let hits = self.shown(&tree, &ranked).await?;
        let mut hits = reranker.reordered(wanted.question, hits).await;
        hits.truncate(wanted.top_k);
        Ok(hits)
    }

    async fn find(&self, question: &Question, tree: &Tree) -> Result<Findings, IndexError> {
        let all = self.best_words(&question.words).await?;
        let mut title: Vec<Word<'_>> = question.title.keys().map(|word| (word.as_str(), 1)).collect();
        title.sort_unstable();
        Ok(Findings {
            places: self.places(&all, tree).await?,
            by_title: self.places(&title, tree).await?,
            definitions: self.defined(question, tree).await?,
            paths: self.paths(&all).await?,
        })
    }

    /// Returns the words of a question that tell most, rare ones and those that it repeats, each
    /// with how often it counts.
    async fn best_words<'q>(&self, counts: &'q HashMap<String, usize>) -> Result<Vec<Word<'q>>, IndexError> {
        let list = serde_json::to_string(&counts.keys().collect::<Vec<_>>()).unwrap_or_default();
        let rows = sqlx::query("SELECT term, doc FROM vocabulary WHERE term IN (SELECT value FROM json_each(?))")
            .bind(list)
            .fetch_all(self.pool())
            .await
            .map_err(|error| self.failed(&error))?;
        let mut weighed: Vec<(f64, Word<'q>)> = rows
            .iter()
            .filter_map(|row| {
                let (word, count) = counts.get_key_value(row.get::<&str, _>(0))?;
                #[expect(clippy::cast_precision_loss, reason = "counts of words and places")]
                let (places, count) = (row.get::<i64, _>(1) as f64, *count as f64);
                let weight = 1.0 + count.ln();
                // A whole number, since a query can only repeat a word.
                let times = if weight < 1.5 {
                    1
                } else if weight < 2.5 {
                    2
                } else {
                    MOST_TIMES
                };
                Some((weight / (1.0 + places).ln(), (word.as_str(), times)))
            })
            .collect();
        weighed.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
        weighed.truncate(MOST_WORDS);
        Ok(weighed.into_iter().map(|(_, word)| word).collect())
    }

    async fn places(&self, words: &[Word<'_>], tree: &Tree) -> Result<Vec<Found>, IndexError> {
        let rows = sqlx::query(
            "SELECT f.rowid, f.rank, c.blob FROM (SELECT rowid, rank FROM words WHERE words MATCH ? AND rank MATCH \
             'bm25(3.0, 1.0)' ORDER BY rank LIMIT ?) f JOIN chunk c ON c.id = f.rowid ORDER BY f.rank",
        )
        .bind(any_of(words))
        .bind(MOST_LOOKED_AT)
        .fetch_all(self.pool())
        .await
        .map_err(|error| self.failed(&error))?;
        let found = rows.iter().map(|row| Found {
            chunk: row.get(0),
            blob: row.get(2),
            // The smaller, the better.
            score: -row.get::<f64, _>(1),
        });
        let of_commit = found.filter(|found| tree.by_blob.contains_key(&found.blob));
        Ok(of_commit.take(MOST_FOUND).collect())
    }

    async fn paths(&self, words: &[Word<'_>]) -> Result<HashMap<i64, f64>, IndexError> {
        let rows = sqlx::query("SELECT rowid, rank FROM path_words WHERE path_words MATCH ? ORDER BY rank LIMIT ?")
            .bind(any_of(words))
            .bind(MOST_LOOKED_AT)
            .fetch_all(self.pool())
            .await
            .map_err(|error| self.failed(&error))?;
        Ok(rows.iter().map(|row| (row.get(0), -row.get::<f64, _>(1))).collect())
    }

    async fn defined(&self, question: &Question, tree: &Tree) -> Result<Vec<Defined>, IndexError> {
        let list = serde_json::to_string(&question.identifiers).unwrap_or_default();
        let rows = sqlx::query(
            "SELECT n.name, c.id, c.blob FROM name n JOIN chunk c ON c.name = n.id \
             WHERE n.name IN (SELECT value FROM json_each(?)) AND c.kind NOT IN ('section', 'key')",
        )
        .bind(list)
        .fetch_all(self.pool())
        .await
        .map_err(|error| self.failed(&error))?;
        let defined = rows.iter().map(|row| Defined {
            name: row.get(0),
            chunk: row.get(1),
            blob: row.get(2),
        });
        Ok(defined
            .filter(|defined| tree.by_blob.contains_key(&defined.blob))
            .collect())
    }

    /// Returns ranked places with their names and texts.
    async fn shown(&self, tree: &Tree, ranked: &[Ranked]) -> Result<Vec<Hit>, IndexError> {
        let chunks: Vec<i64> = ranked.iter().filter_map(|place| place.chunk).collect();
        let rows = sqlx::query(
            "SELECT c.id, c.kind, c.first, c.last, coalesce(n.name, ''), coalesce(p.name, '') FROM chunk c \
             LEFT JOIN name n ON n.id = c.name LEFT JOIN name p ON p.id = c.parent \
             WHERE c.id IN (SELECT value FROM json_each(?))",
        )
        .bind(serde_json::to_string(&chunks).unwrap_or_default())
        .fetch_all(self.pool())
        .await
        .map_err(|error| self.failed(&error))?;
        let mut hits = Vec::new();
        for place in ranked {
            let Some(file) = tree.files.get(&place.path) else {
                continue;
            };
            let row = rows.iter().find(|row| Some(row.get::<i64, _>(0)) == place.chunk);
            let line = |column| row.map_or(1, |row| usize::try_from(row.get::<i64, _>(column)).unwrap_or(1));
            let (first, last) = (line(2), line(3));
            let name = row.map_or_else(String::new, |row| qualified(row.get(5), row.get(4)));
            hits.push(Hit {
                path: file.path.clone(),
                span: format!("L{first}-L{last}"),
                first,
                last,
                name,
                kind: row.map_or_else(|| "file".to_owned(), |row| row.get(1)),
                score: (place.score * 1_000.0).round() / 1_000.0,
                text: String::new(),
            });
        }
        self.add_texts(tree, &mut hits).await?;
        Ok(hits)
    }

    async fn add_texts(&self, tree: &Tree, hits: &mut [Hit]) -> Result<(), IndexError> {
        let wanted: BTreeSet<&str> = hits.iter().map(|hit| hit.path.as_str()).collect();
        let objects: HashMap<&str, &str> = tree
            .files
            .values()
            .filter(|file| wanted.contains(file.path.as_str()) && !file.object.is_empty())
            .map(|file| (file.path.as_str(), file.object.as_str()))
            .collect();
        let unique: BTreeSet<&str> = objects.values().copied().collect();
        let unique: Vec<&str> = unique.into_iter().collect();
        let mut contents: HashMap<String, String> = HashMap::new();
        self.mirror()
            .each_content(&unique, |object, content| {
                contents.insert(object.to_owned(), String::from_utf8_lossy(content).into_owned());
            })
            .await?;
        let texts: Vec<String> = hits
            .iter()
            .map(|hit| {
                let content = objects.get(hit.path.as_str()).and_then(|object| contents.get(*object));
                content.map_or_else(String::new, |content| excerpt(content, hit.first, hit.last))
            })
            .collect();
        for (hit, text) in hits.iter_mut().zip(texts) {
            hit.text = text;
        }
        Ok(())
    }
}

/// Returns some lines of a text; the end of many is left out, and that is said.
pub(super) fn excerpt(text: &str, first: usize, last: usize) -> String {
    let mut shown = String::new();
    let lines = text
        .lines()
        .skip(first.saturating_sub(1))
        .take((last + 1).saturating_sub(first));
    for (taken, line) in lines.enumerate() {
        if taken == MOST_LINES || shown.len() + line.len() > MOST_BYTES {
            let _ = writeln!(shown, "[{} more lines]", 1 + last.saturating_sub(first + taken));
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

/// Returns the query for any of these words. They have no quotes, but could be operators.
fn any_of(words: &[Word<'_>]) -> String {
    let mut query = String::new();
    for (word, times) in words.iter().filter(|(word, _)| !word.contains('"')) {
        for _ in 0..*times {
            let separator = if query.is_empty() { "" } else { " OR " };
            let _ = write!(query, "{separator}\"{word}\"");
        }
    }
    if query.is_empty() {
        // No word is written so.
        query.push_str("\"  \"");
    }
    query
}

/// Returns the words of a name that a part of it would have, for searches by parts of names.
pub(super) fn is_part(text: &str) -> bool {
    text.chars().count() >= 3 && words::identifiers(text).len() == 1
}
