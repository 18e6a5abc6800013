//! Questions that people are asked to approve, and whether an answer counts.
//!
//! A question names a digest of all that an approval would cover, shown or not. An approval is
//! bound to that digest alone: if the digest has changed when the program is about to act, the
//! approval is void, and the question is asked again.

pub mod config; // what waits for a person
pub mod digest; // identifies what is approved
pub mod proposal; // a plan that waits
pub mod difference; // what a result does, from git's raw difference
pub mod automatic; // whether a result may pass without a person
pub mod extent; // the size of a result, and the order in which its files are shown

use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use digest::{Beginning, Digest};

/// A question to people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    pub id: Uuid,
    /// Digest of all that an approval would cover.
    pub digest: Digest,
    /// The commit that would be pushed. It tells what changed where the approval becomes void.
    #[serde(default)]
    pub commit: String,
    pub at: DateTime<Utc>,
}

/// An approval that was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The id of the question.
    pub id: Uuid,
    pub digest: Digest,
    /// The commit that was to be pushed.
    #[serde(default)]
    pub commit: String,
    pub by: String,
}

/// An answer to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word<'a> {
    /// The part of the digest that the person wrote.
    pub digest: Option<&'a Beginning>,
    /// Whether the answer was certainly given after the question.
    pub is_later: bool,
}

/// The reason why an answer does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It names another digest.
    OtherDigest,
    /// It was given before the question, or nobody can tell.
    NotLater,
}

impl Question {
    pub fn new(digest: Digest, commit: &str) -> Self {
        Self {
            id: Uuid::now_v7(),
            digest,
            commit: commit.to_owned(),
            at: Utc::now(),
        }
    }

    /// Checks whether an answer counts. The digest can be known from the question only, so an
    /// answer that names it counts whenever it was given.
    pub fn takes(&self, word: Word<'_>) -> Result<(), Refusal> {
        match word.digest {
            Some(beginning) if self.digest.begins_with(beginning) => Ok(()),
            Some(_) => Err(Refusal::OtherDigest),
            None if word.is_later => Ok(()),
            None => Err(Refusal::NotLater),
        }
    }

    /// Returns the time at which the question lapses that nobody has answered for so many days.
    pub fn lapses(&self, days: u32) -> DateTime<Utc> {
        self.at + TimeDelta::days(i64::from(days))
    }

    /// Returns the approval that `by` gave.
    pub fn granted(&self, by: &str) -> Grant {
        Grant {
            id: self.id,
            digest: self.digest.clone(),
            commit: self.commit.clone(),
            by: by.to_owned(),
        }
    }
}

/// Writes the refusal as part of a sentence.
impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::OtherDigest => "that digest is not the one of what waits for approval",
            Self::NotLater => "it is not certain that this was said after the question was asked",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_counts_after_the_question_or_with_its_digest() {
        let question = Question::new(Digest::of(&[b"what"]), "");
        let right: Beginning = question.digest.as_str()[..8].parse().unwrap();
        let wrong: Beginning = "0123456789".parse().unwrap();
        for (digest, is_later, expected) in [
            (None, true, Ok(())),
            (None, false, Err(Refusal::NotLater)),
            (Some(&right), true, Ok(())),
            (Some(&right), false, Ok(())),
            (Some(&wrong), true, Err(Refusal::OtherDigest)),
        ] {
            assert_eq!(question.takes(Word { digest, is_later }), expected);
        }
    }
}
