//! The rounds of a review: what to do next, from what is recorded.
//!
//! Everything that a decision needs is in the record, so a run that was killed goes on where it
//! was: at most the question that was under way is asked again. No document is judged twice, and
//! every sequence of answers ends: passed, or not ready for a reason.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::document::Document;
use super::evidence::{self, Known, Place};
use super::score::Score;
use super::{Blocker, Review};
use crate::approval::digest::Digest;

/// Rounds without a better score after which it is not tried again.
const PLATEAU: usize = 2;

/// The rules for passing a document, and for sending it back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    pub target_score: Score,
    pub max_rounds: usize,
}

/// All rounds so far. `Default` is the state before the first one.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewLoop {
    rounds: Vec<Round>,
    /// The first round that counts: those before it were about what people had changed since.
    first: usize,
    /// Fingerprints of the parts of the document of the last round.
    parts: BTreeSet<String>,
}

/// One round: a judgement of the document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Digest of the document's text.
    pub digest: Digest,
    pub opinion: Opinion,
    /// The places that blockers which count name and that are there, and the commit that has them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub places: BTreeSet<Place>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// Whether the opinion is from an earlier round, on the same document.
    #[serde(default)]
    pub is_repeated: bool,
    /// Whether the document was sent back for a revision.
    #[serde(default)]
    is_sent_back: bool,
}

/// The outcome of a review request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Opinion {
    Given {
        /// The review, with only the blockers that count.
        review: Review,
        /// Blockers without evidence.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        unproven: Vec<Blocker>,
    },
    /// There is no review, for this reason.
    Missing(String),
}

/// The next step for a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Ask the reviewer about this document.
    Ask,
    /// The document passed.
    Pass,
    /// Have the document made better, then ask again. [`ReviewLoop::send_back`] records it.
    Revise,
    /// The document is not ready, and will not get better by itself.
    GiveUp(Unready),
}

/// The reason why a document that is not ready is not sent back again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unready {
    /// All rounds are used up.
    Rounds(usize),
    /// The score did not rise any more.
    Plateau,
    /// There is no review, for this reason.
    NoReview(String),
}

impl Opinion {
    /// Tells whether the document passes. Without a review it does not.
    pub fn passes(&self, target: Score) -> bool {
        match self {
            Self::Given { review, .. } => review.passes(target),
            Self::Missing(_) => false,
        }
    }

    pub fn score(&self) -> Option<Score> {
        match self {
            Self::Given { review, .. } => Some(review.score),
            Self::Missing(_) => None,
        }
    }
}

impl ReviewLoop {
    /// Returns all rounds, the oldest first.
    pub fn rounds(&self) -> &[Round] {
        &self.rounds
    }

    /// Returns those that count: since [`Self::begin_anew`], if that was called.
    fn counting(&self) -> &[Round] {
        self.rounds.get(self.first..).unwrap_or_default()
    }

    /// Tells whether the document of the last round is being made better.
    pub fn is_sent_back(&self) -> bool {
        self.counting().last().is_some_and(|last| last.is_sent_back)
    }

    /// Tells whether the last round is about another document, which nobody was asked to make
    /// better: so people had it changed.
    pub fn is_about_another(&self, digest: &Digest) -> bool {
        let last = self.counting().last();
        last.is_some_and(|last| !last.is_sent_back && last.digest != *digest)
    }

    /// Counts the rounds from here on: what people had changed has as many as the first one. What
    /// is known of a document stays known.
    pub fn begin_anew(&mut self) {
        self.first = self.rounds.len();
    }

    /// Returns what to do with the document next. Only a document that came back unchanged is
    /// recorded by this: the opinion on it is known.
    pub fn next(&mut self, digest: &Digest, rules: Rules) -> Next {
        let last = self.counting().last();
        if last.is_none_or(|last| last.is_sent_back || last.digest != *digest) {
            let Some(known) = self.rounds.iter().rev().find(|round| round.is_given_for(digest)) else {
                let used = self.counting().len();
                return if used > 0 && used >= rules.max_rounds {
                    Next::GiveUp(Unready::Rounds(used))
                } else {
                    Next::Ask
                };
            };
            let repeated = Round {
                is_repeated: true,
                is_sent_back: false,
                ..known.clone()
            };
            self.rounds.push(repeated);
        }
        self.decide(rules)
    }

    /// Records the answer about `document`. `known` is what its evidence is checked against.
    pub fn record(&mut self, document: &Document, answer: Result<Review, String>, known: &Known) {
        let opinion = match answer {
            Ok(mut review) => {
                let blockers = std::mem::take(&mut review.blockers);
                let earlier = self.last_blockers().map(|blockers| (blockers, &self.parts));
                let (counting, unproven) = evidence::weigh(blockers, document, known, earlier);
                review.blockers = counting;
                Opinion::Given { review, unproven }
            }
            Err(why) => Opinion::Missing(why),
        };
        let places = match &opinion {
            Opinion::Given { review, .. } => evidence::found(&review.blockers, known),
            Opinion::Missing(_) => BTreeSet::new(),
        };
        self.rounds.push(Round {
            digest: document.digest(),
            opinion,
            places,
            commit: known.commit.clone(),
            is_repeated: false,
            is_sent_back: false,
        });
        self.parts = document.fingerprints();
    }

    /// Records that the document of the last round is sent back for a revision. This is saved
    /// together with the run's step back: a run that is killed before has the same decision to make
    /// again.
    pub fn send_back(&mut self) {
        if let Some(last) = self.rounds.last_mut() {
            last.is_sent_back = true;
        }
    }

    fn decide(&self, rules: Rules) -> Next {
        let Some(last) = self.counting().last() else {
            return Next::Ask;
        };
        if last.opinion.passes(rules.target_score) {
            return Next::Pass;
        }
        if let Opinion::Missing(why) = &last.opinion {
            return Next::GiveUp(Unready::NoReview(why.clone()));
        }
        let used = self.counting().len();
        if used >= rules.max_rounds {
            return Next::GiveUp(Unready::Rounds(used));
        }
        if self.is_on_a_plateau() {
            return Next::GiveUp(Unready::Plateau);
        }
        Next::Revise
    }

    fn is_on_a_plateau(&self) -> bool {
        let scores: Vec<Score> = self
            .counting()
            .iter()
            .filter_map(|round| round.opinion.score())
            .collect();
        let Some((before, last)) = scores.len().checked_sub(PLATEAU).map(|at| scores.split_at(at)) else {
            return false;
        };
        before
            .iter()
            .max()
            .is_some_and(|best| last.iter().all(|score| score <= best))
    }

    fn last_blockers(&self) -> Option<&[Blocker]> {
        self.counting().iter().rev().find_map(|round| match &round.opinion {
            Opinion::Given { review, .. } => Some(review.blockers.as_slice()),
            Opinion::Missing(_) => None,
        })
    }
}

impl Round {
    fn is_given_for(&self, digest: &Digest) -> bool {
        self.digest == *digest && matches!(self.opinion, Opinion::Given { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RULES: Rules = Rules {
        target_score: Score::EIGHT,
        max_rounds: 5,
    };

    fn document(number: usize) -> Document {
        Document::of_lines(&format!("step {number}\n"))
    }

    fn review(ready: bool, score: f64) -> Review {
        Review {
            ready_for_implementation: ready,
            score: Score::try_from(score).unwrap(),
            ..Review::default()
        }
    }

    fn with_blocker(evidence: &str) -> Review {
        let blocker = Blocker {
            claim: "wrong".to_owned(),
            evidence: vec![evidence.to_owned()],
            why: String::new(),
        };
        Review {
            blockers: vec![blocker],
            ..review(true, 9.0)
        }
    }

    /// Plays the answers, a new document for each; returns what comes behind each.
    fn played(answers: Vec<Result<Review, String>>) -> Vec<Next> {
        let mut reviews = ReviewLoop::default();
        let known = Known {
            commands: vec!["make test".to_owned()],
            ..Known::default()
        };
        let mut nexts = Vec::new();
        for (number, answer) in answers.into_iter().enumerate() {
            assert_eq!(reviews.next(&document(number).digest(), RULES), Next::Ask);
            reviews.record(&document(number), answer, &known);
            nexts.push(reviews.next(&document(number).digest(), RULES));
            reviews.send_back();
        }
        nexts
    }

    #[test]
    fn a_document_passes_when_it_is_ready_good_enough_and_nothing_blocks_it() {
        for (answer, expected) in [
            (Ok(review(true, 8.0)), Next::Pass),
            (Ok(review(true, 7.99)), Next::Revise),
            (Ok(review(false, 10.0)), Next::Revise),
            (Ok(with_blocker("make test")), Next::Revise),
            (Ok(with_blocker("my experience")), Next::Pass),
            (
                Err("it timed out".to_owned()),
                Next::GiveUp(Unready::NoReview("it timed out".to_owned())),
            ),
        ] {
            assert_eq!(played(vec![answer.clone()]), [expected], "{answer:?}");
        }
    }

    #[test]
    fn it_ends_after_the_last_round_or_when_nothing_gets_better() {
        let scores = |scores: &[f64]| played(scores.iter().map(|score| Ok(review(false, *score))).collect());
        let rising = scores(&[3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(rising.last(), Some(&Next::GiveUp(Unready::Rounds(5))));
        assert!(rising[..4].iter().all(|next| *next == Next::Revise));
        assert_eq!(scores(&[6.0, 5.0, 6.0]).last(), Some(&Next::GiveUp(Unready::Plateau)));
        assert_eq!(scores(&[5.0, 6.0, 6.0]).last(), Some(&Next::Revise));
    }

    #[test]
    fn the_same_document_is_not_judged_twice() {
        let mut reviews = ReviewLoop::default();
        let same = document(1);
        assert_eq!(reviews.next(&same.digest(), RULES), Next::Ask);
        reviews.record(&same, Ok(review(false, 5.0)), &Known::default());
        // As often as the run is killed here, the decision is the same.
        for _ in 0..3 {
            assert_eq!(reviews.next(&same.digest(), RULES), Next::Revise);
        }
        reviews.send_back();
        assert_eq!(reviews.next(&same.digest(), RULES), Next::Revise);
        reviews.send_back();
        assert_eq!(reviews.next(&same.digest(), RULES), Next::GiveUp(Unready::Plateau));
        let repeated: Vec<bool> = reviews.rounds().iter().map(|round| round.is_repeated).collect();
        assert_eq!(repeated, [false, true, true]);
    }

    #[test]
    fn what_people_had_changed_has_all_rounds_again() {
        let mut reviews = ReviewLoop::default();
        let rules = Rules { max_rounds: 1, ..RULES };
        reviews.record(&document(1), Ok(review(true, 9.0)), &Known::default());
        assert_eq!(reviews.next(&document(1).digest(), rules), Next::Pass);
        assert!(!reviews.is_about_another(&document(1).digest()));
        assert!(reviews.is_about_another(&document(2).digest()));
        reviews.begin_anew();
        assert!(!reviews.is_sent_back() && !reviews.is_about_another(&document(2).digest()));
        assert_eq!(reviews.next(&document(2).digest(), rules), Next::Ask);
        reviews.record(&document(2), Ok(review(false, 5.0)), &Known::default());
        assert_eq!(
            reviews.next(&document(2).digest(), rules),
            Next::GiveUp(Unready::Rounds(1))
        );
        reviews.begin_anew();
        assert_eq!(reviews.next(&document(1).digest(), rules), Next::Pass, "it is known");
        assert_eq!(reviews.rounds().len(), 3);
    }

    proptest! {
        /// Documents come from a few, so that they repeat; the run is killed between any two steps,
        /// and then only what was saved is left.
        #[test]
        fn it_ends_and_passes_nothing_that_did_not_pass(
            steps in proptest::collection::vec((0..4_usize, any::<bool>(), 0..=100_u32, 0..6_u8, any::<bool>()), 1..40),
        ) {
            let mut reviews = ReviewLoop::default();
            let mut saved = serde_json::to_string(&reviews).unwrap();
            let mut asked = Vec::new();
            let mut sent_back = 0;
            for (number, ready, tenths, kind, is_killed) in steps {
                let document = document(number);
                let digest = document.digest();
                match reviews.next(&digest, RULES) {
                    Next::Ask => {
                        let answer = match kind {
                            0 => Err("nothing came".to_owned()),
                            _ => Ok(review(ready, f64::from(tenths) / 10.0)),
                        };
                        reviews.record(&document, answer, &Known::default());
                        if is_killed {
                            reviews = serde_json::from_str(&saved).unwrap();
                            continue;
                        }
                        asked.push(digest.clone());
                    }
                    Next::Pass => {
                        let last = reviews.rounds().last().unwrap();
                        prop_assert!(last.opinion.passes(RULES.target_score) && last.digest == digest);
                    }
                    Next::Revise => {
                        reviews.send_back();
                        sent_back += usize::from(!is_killed);
                        prop_assert!(sent_back < RULES.max_rounds);
                    }
                    Next::GiveUp(_) => {}
                }
                if is_killed {
                    reviews = serde_json::from_str(&saved).unwrap();
                } else {
                    saved = serde_json::to_string(&reviews).unwrap();
                    prop_assert_eq!(&serde_json::from_str::<ReviewLoop>(&saved).unwrap(), &reviews);
                }
            }
            let given = reviews.rounds().iter().filter(|round| !round.is_repeated);
            prop_assert_eq!(given.count(), asked.len());
            prop_assert!(asked.len() <= RULES.max_rounds);
        }
    }
}
