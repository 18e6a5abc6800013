//! Facts about documents that other programs have evaluated.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::review::score::Score;

/// An evaluation that has begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Started {
    pub id: Uuid,
    /// The document's name, or its first line.
    pub name: String,
    /// Digest of the document.
    pub digest: String,
    pub target_score: Score,
}

/// An evaluation with a review. `score` is from 0 to 10; `ready` is what the reviewer says, and
/// `passed` what the program decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ended {
    pub id: Uuid,
    pub name: String,
    pub digest: String,
    pub score: Score,
    pub ready: bool,
    pub passed: bool,
    pub milliseconds: u64,
}

/// An evaluation without a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    pub id: Uuid,
    pub name: String,
    pub digest: String,
    pub reason: String,
    pub milliseconds: u64,
}
