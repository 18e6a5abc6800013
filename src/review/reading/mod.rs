//! Reads a reviewer's answer as a [`Review`].
//!
//! In flexible mode the verdict may stand in JSON objects anywhere in the answer, in labelled lines
//! and headings, or in tags; English and Japanese are read. Everything that states a verdict
//! counts, and of several the worst: an answer is ready only if nothing in it says otherwise, and
//! its score is the lowest of those stated. Quoted text (an example of the form, a line of the
//! document) and a comment in JSON can make a verdict worse, but supply none. What a verdict needs
//! and does not state is never assumed; such an answer is unreadable.

mod json; // verdicts in JSON objects
mod labels; // the words by which fields are known
mod text; // labelled lines, headings, sections
mod words; // words that say yes or no
#[cfg(test)]
mod tests;

use super::score::Score;
use super::{Mode, Review};
use crate::conversation::Reply;
use crate::conversation::decode::{self, Unreadable};

const FORM: &str = "Reply with exactly one JSON object: {\"ready_for_implementation\": true or false, \
    \"score\": a number from 0 to 10, \"conclusion\": ..., \"rationale\": ..., \
    \"analysis\": {\"strengths\": [...], \"weaknesses\": [...]}, \"recommendations\": [...], \
    \"blockers\": [{\"claim\": ..., \"evidence\": [...], \"why\": ...}], \"technical_notes\": ...}.";

/// Longest text of one field that is kept, in characters.
const LONGEST_TEXT: usize = 4_000;
/// Most entries of one list that are kept.
const MOST_ENTRIES: usize = 30;

/// Returns the review in `reply`; the error says, for the reviewer, what is wrong with it.
pub fn read(reply: &Reply, mode: Mode) -> Result<Review, Unreadable> {
    let refused = |what: &str| Err(Unreadable::with_form(what.to_owned(), FORM));
    if reply.cut {
        return refused("The answer was cut at the length limit before its end");
    }
    let found = match mode {
        Mode::Flexible => flexible(reply),
        Mode::Strict => json::strict(&reply.text).map_err(Unreadable::new),
    };
    found
        .and_then(|statements| statements.review().map_err(Unreadable::new))
        .map_err(|unreadable| unreadable.in_form(FORM))
}

fn flexible(reply: &Reply) -> Result<Statements, Unreadable> {
    let said = decode::without_thinking(&reply.text);
    if said.is_empty() || decode::ends_in_thought(&reply.text) {
        return Err(decode::fault(reply).unwrap_or_else(|| Unreadable::new("The answer is empty")));
    }
    let mut statements = Statements::default();
    let prose = json::take_objects(&said, &mut statements);
    let comments = decode::comments(&said);
    statements.is_vetoed |= comments.iter().any(|comment| words::speaks_against(comment));
    if text::holds_keys(&prose) {
        return Err(decode::fault(reply).unwrap_or_else(|| Unreadable::new("The answer holds broken JSON")));
    }
    text::take(&prose, &mut statements);
    Ok(statements)
}

/// Everything that an answer states.
#[derive(Debug, Default)]
struct Statements {
    /// All statements on whether the document is ready.
    ready: Vec<bool>,
    /// Scores; `None` for one that cannot be read.
    scores: Vec<Option<Score>>,
    /// The reviewer's statements of confidence, for answers without a score.
    confidences: Vec<String>,
    /// Whether something quoted or said in passing speaks against the document.
    is_vetoed: bool,
    review: Review,
}

impl Statements {
    fn review(mut self) -> Result<Review, String> {
        if self.ready.is_empty() {
            return Err("The answer does not say whether the document is ready".to_owned());
        }
        let scores = self.scores.into_iter().collect::<Option<Vec<_>>>();
        let scores = scores.ok_or("The answer's score is not a number from 0 to 10")?;
        let is_ready = !self.is_vetoed && self.ready.into_iter().all(|ready| ready);
        let derived = || self.confidences.iter().filter_map(|sure| derived(is_ready, sure)).min();
        self.review.score = scores
            .into_iter()
            .min()
            .or_else(derived)
            .ok_or("The answer states no score")?;
        self.review.ready_for_implementation = is_ready;
        Ok(self.review)
    }

    /// Adds to the text of a field.
    fn add_text(&mut self, field: labels::Text, text: &str) {
        if words::speaks_against(text) {
            self.is_vetoed = true;
        }
        let review = &mut self.review;
        let place = match field {
            labels::Text::Conclusion => &mut review.conclusion,
            labels::Text::Rationale => &mut review.rationale,
            labels::Text::TechnicalNotes => &mut review.technical_notes,
        };
        if place.ends_with(text) || place.len() > LONGEST_TEXT {
            return;
        }
        if !place.is_empty() {
            place.push('\n');
        }
        place.push_str(&shortened(text));
    }

    fn add_entry(&mut self, list: labels::List, entry: &str) {
        let entry = shortened(entry);
        if words::means_nothing(&entry) {
            return;
        }
        let review = &mut self.review;
        let list = match list {
            labels::List::Strengths => &mut review.analysis.strengths,
            labels::List::Weaknesses => &mut review.analysis.weaknesses,
            labels::List::Recommendations => &mut review.recommendations,
            labels::List::Blockers => {
                let claim = entry;
                return self.add_blocker(super::Blocker {
                    claim,
                    ..super::Blocker::default()
                });
            }
        };
        if list.len() < MOST_ENTRIES && !list.contains(&entry) {
            list.push(entry);
        }
    }

    fn add_blocker(&mut self, blocker: super::Blocker) {
        let blockers = &mut self.review.blockers;
        if blockers.len() < MOST_ENTRIES && !blockers.iter().any(|known| known.claim == blocker.claim) {
            blockers.push(blocker);
        }
    }
}

/// Returns the score of an answer that says only whether the document passes and how sure the
/// reviewer is: with the usual target of 8 only a pass that is sure passes.
fn derived(is_ready: bool, confidence: &str) -> Option<Score> {
    let (ready, not_ready) = match confidence.trim() {
        "high" | "高" | "高い" => (9.0, 2.0),
        "medium" | "中" => (7.0, 3.0),
        "low" | "低" | "低い" => (5.0, 4.0),
        _ => return None,
    };
    Score::try_from(if is_ready { ready } else { not_ready }).ok()
}

fn shortened(text: &str) -> String {
    text.trim().chars().take(LONGEST_TEXT).collect()
}
