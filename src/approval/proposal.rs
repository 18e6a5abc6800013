//! A plan that waits for a person: what an approval of it is bound to, and what people are told.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::digest::Digest;
use super::{Grant, Question};

/// A part of what a plan's approval is bound to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// The plan as the model made it.
    Plan,
    /// The commands that set the project up.
    SetUp,
    /// The environment and its services.
    Environment,
    /// The hosts that its programs may reach.
    Egress,
    /// The limits that the configuration sets for the run.
    Budget,
    /// The tokens that a person has allowed beyond it.
    Allowance,
}

/// A digest of each part that an approval is bound to. Kept one by one, so that people can be told
/// which of them changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Bound(BTreeMap<Part, Digest>);

/// Why a plan waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "reason")]
pub enum Reason {
    /// The configuration has every plan wait.
    Configured,
    /// The estimated cost is more than `approval.cost_limit_usd`.
    Cost { estimated: f64, limit: f64 },
    /// A review did not pass; `outcome` says how it ended.
    Review { outcome: String },
}

/// An approval of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanGrant {
    #[serde(flatten)]
    pub grant: Grant,
    pub bound: Bound,
    pub reason: Reason,
}

/// A refusal of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denial {
    /// The question that it answers.
    pub question: Uuid,
    pub by: String,
    pub reason: String,
    /// Digest of the plan; `None` if an earlier version of the program wrote this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Digest>,
}

/// A plan that waits, as people are told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldPlan {
    pub question: Question,
    pub bound: Bound,
    pub reason: Reason,
    /// The parts that changed since an approval, or a question, that is void now.
    pub changed: Vec<Part>,
    /// Whether an approval became void.
    pub is_void: bool,
    /// Whether the work has begun, by this plan or by one before it.
    pub is_at_work: bool,
    /// Whether it is a plan that was denied before.
    #[serde(default)]
    pub was_denied: bool,
    /// The goal in one line, cleaned of secrets.
    pub goal: String,
    pub steps: Vec<String>,
    pub set_up: Vec<String>,
    pub checks: Vec<String>,
    /// Files of the project that the plan names.
    pub files: Vec<String>,
    pub environment: String,
    pub image: String,
    pub egress: Egress,
    pub budget: Vec<String>,
    pub estimate: Estimate,
}

/// The network access of programs in the container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "mode")]
pub enum Egress {
    Nothing,
    Everything,
    Hosts {
        hosts: Vec<String>,
        only_during_set_up: bool,
    },
}

/// A rough estimate of the tokens and the cost of the work on a plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub tokens: u64,
    /// `None` where no model has a price.
    pub cost_usd: Option<f64>,
}

impl Part {
    const ALL: [Self; 6] = [
        Self::Plan,
        Self::SetUp,
        Self::Environment,
        Self::Egress,
        Self::Budget,
        Self::Allowance,
    ];

    /// Returns the part as a word of a sentence.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Plan => "the plan",
            Self::SetUp => "its set-up commands",
            Self::Environment => "the environment",
            Self::Egress => "the hosts that may be reached",
            Self::Budget => "the budget",
            Self::Allowance => "the tokens that were allowed besides",
        }
    }
}

impl Bound {
    pub fn of(parts: impl IntoIterator<Item = (Part, Digest)>) -> Self {
        Self(parts.into_iter().collect())
    }

    /// Returns the digest of a part.
    pub fn part(&self, part: Part) -> Option<&Digest> {
        self.0.get(&part)
    }

    /// Returns the digest of all parts.
    pub fn digest(&self) -> Digest {
        let parts: Vec<&[u8]> = self.0.values().map(|digest| digest.as_str().as_bytes()).collect();
        Digest::of(&parts)
    }

    /// Returns the parts that are not the same in `other`.
    pub fn changed(&self, other: &Self) -> Vec<Part> {
        let is_changed = |part: &Part| self.0.get(part) != other.0.get(part);
        Part::ALL.into_iter().filter(is_changed).collect()
    }
}

impl PlanGrant {
    /// Returns true if the approval covers what is bound now. Tokens that a person allowed since do
    /// not make it void: who may allow them may approve as well.
    pub fn covers(&self, now: &Bound) -> bool {
        let changed = self.bound.changed(now);
        self.grant.digest == self.bound.digest() && changed.iter().all(|part| *part == Part::Allowance)
    }
}

/// Returns what the work on a plan of so many subtasks may take: some turns for each, whose
/// conversation grows to a part of the model's window. It is a figure to decide by, not a promise.
pub fn expected_tokens(subtasks: usize, window: u64) -> (u64, u64) {
    /// Turns for each subtask, and some for the checks.
    const TURNS_EACH: u64 = 6;
    const TURNS_MORE: u64 = 2;
    /// Usual input and output of a turn, in tokens.
    const INPUT: u64 = 12_000;
    const OUTPUT: u64 = 500;
    let subtasks = u64::try_from(subtasks).unwrap_or(u64::MAX);
    let turns = subtasks.saturating_mul(TURNS_EACH).saturating_add(TURNS_MORE);
    (
        turns.saturating_mul(INPUT.min(window / 2)),
        turns.saturating_mul(OUTPUT),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(words: [&str; 6]) -> Bound {
        let digests = words.map(|word| Digest::of(&[word.as_bytes()]));
        Bound::of(Part::ALL.into_iter().zip(digests))
    }

    const WORDS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];

    fn with_other(place: usize) -> Bound {
        let mut words = WORDS;
        words[place] = "other";
        bound(words)
    }

    #[test]
    fn each_part_counts_and_is_named() {
        let before = bound(WORDS);
        for (place, part) in Part::ALL.into_iter().enumerate() {
            let now = with_other(place);
            assert_eq!(before.changed(&now), [part]);
            assert_ne!(before.digest(), now.digest());
        }
        assert_eq!(before.changed(&before), []);
        assert_eq!(before.changed(&Bound::default()).len(), Part::ALL.len());
    }

    #[test]
    fn an_approval_covers_what_it_was_given_for_and_tokens_allowed_since() {
        let before = bound(WORDS);
        let grant = PlanGrant {
            grant: Question::new(before.digest(), "").granted("alice"),
            bound: before.clone(),
            reason: Reason::Configured,
        };
        assert!(grant.covers(&before));
        for (place, part) in Part::ALL.into_iter().enumerate() {
            assert_eq!(grant.covers(&with_other(place)), part == Part::Allowance, "{part:?}");
        }
        let forged = PlanGrant {
            grant: Question::new(with_other(0).digest(), "").granted("alice"),
            ..grant
        };
        assert!(!forged.covers(&before));
    }

    #[test]
    fn an_estimate_grows_with_the_subtasks_and_stays_within_the_window() {
        assert_eq!(expected_tokens(1, 100_000), (96_000, 4_000));
        assert_eq!(expected_tokens(1, 4_000), (16_000, 4_000));
        assert!(expected_tokens(3, 100_000) > expected_tokens(2, 100_000));
        assert!(expected_tokens(usize::MAX, u64::MAX).0 > 0);
    }
}
