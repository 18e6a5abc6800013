//! A second model's judgement of a plan, of a result or of a document, and what follows from it.
//!
//! The reviewer gives an opinion; the program decides. An answer that cannot be read never passes,
//! and an answer that says "not ready" anywhere is never read as ready: of several verdicts the
//! worst counts. Asking the reviewer is done elsewhere.

pub mod score; // a score from 0 to 10
pub mod reading; // an answer as a review
pub mod program; // what the program finds wrong with a plan by itself
pub mod document; // what is judged
pub mod evidence; // which blockers count
pub mod rounds; // what to do next, from what is recorded

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use score::Score;

/// How a reviewer's answer is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// JSON anywhere in the answer, completed from headings and labelled lines.
    #[default]
    Flexible,
    /// One JSON object and nothing else.
    Strict,
}

/// A reviewer's opinion of a document. The fields are those of the reply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Review {
    pub ready_for_implementation: bool,
    pub score: Score,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub conclusion: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub rationale: String,
    #[serde(skip_serializing_if = "Analysis::is_empty")]
    pub analysis: Analysis,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recommendations: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub blockers: Vec<Blocker>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub technical_notes: String,
}

/// The strengths and weaknesses that the reviewer sees.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Analysis {
    pub strengths: Vec<String>,
    pub weaknesses: Vec<String>,
}

/// A reason not to go on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Blocker {
    pub claim: String,
    /// The evidence that the reviewer names: places, commands, criteria.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
}

impl Review {
    /// Tells whether the document passes: it is ready, its score reaches the target, and nothing
    /// blocks it.
    pub fn passes(&self, target: Score) -> bool {
        self.ready_for_implementation && self.score >= target && self.blockers.is_empty()
    }
}

impl Analysis {
    fn is_empty(&self) -> bool {
        self.strengths.is_empty() && self.weaknesses.is_empty()
    }
}
