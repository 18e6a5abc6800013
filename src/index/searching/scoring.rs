//! The places that have words of a question, by BM25: rare words count for more than common ones,
//! and long places for less than short ones.
//!
//! Only the commit's own places decide: how rare a word is in other commits, or in what was read
//! for them, does not change an answer.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use sqlx::Row;

use super::ranking::Found;
use crate::index::error::unreadable;
use crate::index::stored::postings::{self, Mark};
use crate::index::tree::{Range, Tree};
use crate::index::{Index, IndexError};

/// The usual constants of BM25: how soon repetition stops to count, and how much length counts.
const REPETITION: f64 = 1.2;
const LENGTH: f64 = 0.75;
/// Weight of a word in the name of a place, beside one in its lines.
const IN_NAME: f64 = 3.0;
/// Rarity of a word that most places have.
const COMMON: f64 = 1e-6;

/// A word of a question, and how often it counts.
pub(super) type Word<'q> = (&'q str, usize);

/// Posting lists of some words: the places of the index in which each stands.
#[derive(Default)]
pub(super) struct Lists {
    of: HashMap<String, Vec<List>>,
}

/// A part of the places of a word, and the place from which they are told.
struct List {
    base: u64,
    bytes: Vec<u8>,
}

/// The weights of words in each place of a commit that has them.
#[derive(Default)]
pub(super) struct Weights<'w> {
    of: HashMap<&'w str, Vec<(usize, f64)>>,
}

impl Index {
    /// Returns in which places each of these words stands.
    pub(super) async fn lists(&self, words: &[&str]) -> Result<Lists, IndexError> {
        let mut words: Vec<&str> = words.to_vec();
        words.sort_unstable();
        words.dedup();
        let rows = sqlx::query(
            "SELECT s.first, b.data FROM block b JOIN segment s ON s.id = b.segment WHERE b.id IN ( \
             SELECT b.id FROM segment s, json_each(?1) w JOIN block b ON b.segment = s.id AND b.first = w.value \
             UNION \
             SELECT (SELECT b.id FROM block b WHERE b.segment = s.id AND b.first < w.value ORDER BY b.first DESC, b.id DESC LIMIT 1) \
             FROM segment s, json_each(?1) w) ORDER BY s.first, b.id",
        )
        .bind(serde_json::to_string(&words).unwrap_or_default())
        .fetch_all(self.pool())
        .await
        .map_err(|error| self.failed(&error))?;
        let mut lists = Lists::default();
        for row in &rows {
            let base = row.get::<i64, _>(0).cast_unsigned();
            lists
                .take(&words, base, row.get(1))
                .ok_or_else(|| self.failed(&unreadable("a block of words")))?;
        }
        Ok(lists)
    }
}

impl Lists {
    /// Takes the lists of these words, which are in order, out of a block.
    fn take(&mut self, words: &[&str], base: u64, block: &[u8]) -> Option<()> {
        let mut rest = words;
        postings::each(block, |word, list| {
            while rest.first().is_some_and(|first| first.as_bytes() < word) {
                rest = &rest[1..];
            }
            if let Some(first) = rest.first().filter(|first| first.as_bytes() == word) {
                let lists = self.of.entry((*first).to_owned()).or_default();
                lists.push(List {
                    base,
                    bytes: list.to_vec(),
                });
            }
        })
    }

    /// Returns how many places of the commit have each word.
    pub(super) fn counts(&self, tree: &Tree) -> HashMap<&str, usize> {
        let counted = self.of.iter().map(|(word, lists)| {
            let mut count = 0;
            each(lists, tree, |_, _| count += 1);
            (word.as_str(), count)
        });
        counted.collect()
    }

    /// Returns what each of these words weighs in the places of the commit.
    pub(super) fn weights<'w>(&self, words: impl Iterator<Item = &'w str>, tree: &Tree) -> Weights<'w> {
        let average = share(tree.lengths.iter().map(|length| *length as usize).sum(), tree.places());
        let mut weights = Weights::default();
        for word in words {
            let (Some(lists), Entry::Vacant(vacant)) = (self.of.get(word), weights.of.entry(word)) else {
                continue;
            };
            let mut places = Vec::new();
            each(lists, tree, |place, mark| {
                let length = tree.lengths.get(place).copied().unwrap_or_default();
                let often = f64::from(mark.body) + IN_NAME * f64::from(mark.name);
                places.push((place, weight(often, f64::from(length) / average)));
            });
            vacant.insert(places);
        }
        weights
    }
}

/// Calls `take` with each place of the commit that lists name: its number, and how often.
fn each(lists: &[List], tree: &Tree, mut take: impl FnMut(usize, Mark)) {
    for list in lists {
        let mut ranges = tree.ranges.as_slice();
        // A list that is damaged ends early: its bytes were looked at as they were read.
        let _ = postings::marks(&list.bytes, list.base, |mark| {
            // Places come in order, and mostly near one another.
            let is_behind = |range: &Range| range.next <= mark.place;
            if ranges.first().is_some_and(is_behind) {
                ranges = &ranges[1..];
                if ranges.first().is_some_and(is_behind) {
                    ranges = &ranges[ranges.partition_point(is_behind)..];
                }
            }
            let within = ranges.first().and_then(|range| {
                let within = usize::try_from(mark.place.checked_sub(range.first)?).ok()?;
                Some(range.start + within)
            });
            if let Some(place) = within {
                take(place, mark);
            }
        });
    }
}

impl Weights<'_> {
    /// Returns at most `most` places that have some of these words, best first.
    pub(super) fn best(&self, words: &[Word<'_>], tree: &Tree, most: usize) -> Vec<Found> {
        let mut scores = vec![0.0_f64; tree.places()];
        let mut touched = Vec::new();
        for (word, times) in words {
            let places = self.of.get(word).map_or(&[][..], Vec::as_slice);
            let rarity = rarity(places.len(), tree.places()) * float(*times);
            for (place, weight) in places {
                let Some(score) = scores.get_mut(*place) else {
                    continue;
                };
                if *score == 0.0 {
                    touched.push(*place);
                }
                *score += rarity * weight;
            }
        }
        let order = |one: &usize, other: &usize| scores[*other].total_cmp(&scores[*one]).then(one.cmp(other));
        if touched.len() > most {
            touched.select_nth_unstable_by(most, order);
            touched.truncate(most);
        }
        touched.sort_unstable_by(order);
        let found = touched.into_iter().filter_map(|place| {
            Some(Found {
                place,
                content: tree.content_of(place)?,
                score: scores[place],
            })
        });
        found.collect()
    }
}

/// Returns the score of the files whose paths have some of these words.
pub(super) fn by_path(words: &[Word<'_>], tree: &Tree) -> HashMap<usize, f64> {
    let paths = &tree.paths;
    let average = share(paths.lengths.iter().sum(), paths.lengths.len());
    let mut scores: HashMap<usize, f64> = HashMap::new();
    for (word, times) in words {
        let files = paths.files.get(*word).map_or(&[][..], Vec::as_slice);
        let rarity = rarity(files.len(), paths.lengths.len()) * float(*times);
        for (file, often) in files {
            let length = paths.lengths.get(*file).copied().unwrap_or_default();
            *scores.entry(*file).or_default() += rarity * weight(float(*often), float(length) / average);
        }
    }
    scores
}

/// Returns what a word is worth that `count` of `all` have.
fn rarity(count: usize, all: usize) -> f64 {
    let rarity = ((float(all) - float(count) + 0.5) / (float(count) + 0.5)).ln();
    if rarity > 0.0 { rarity } else { COMMON }
}

fn weight(often: f64, length: f64) -> f64 {
    often * (REPETITION + 1.0) / (often + REPETITION * (1.0 - LENGTH + LENGTH * length))
}

fn share(part: usize, whole: usize) -> f64 {
    float(part.max(1)) / float(whole.max(1))
}

#[expect(clippy::cast_precision_loss, reason = "counts of words, places and files")]
fn float(count: usize) -> f64 {
    count as f64
}
