//! A task that a conversation follows.

use serde::{Deserialize, Serialize};

use super::phrases::Wording;
use crate::messenger::place::Place;

/// A task that a conversation follows, and how much of it was told there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Watched {
    pub(super) place: Place,
    /// The address of the issue.
    pub(super) url: String,
    pub(super) is_japanese: bool,
    /// The number of the newest fact that was looked at.
    pub(super) seen: u64,
    /// The ids of the questions that people in the conversation were asked; an earlier version
    /// noted their digests.
    pub(super) asked: Vec<String>,
    /// The other waits that people in the conversation were told of, each with its time, and the
    /// runs that could not be read.
    pub(super) waits: Vec<String>,
}

impl Watched {
    pub(super) fn default_at(place: Place) -> Self {
        Self {
            place,
            url: String::new(),
            is_japanese: false,
            seen: 0,
            asked: Vec::new(),
            waits: Vec::new(),
        }
    }

    pub(super) fn wording(&self) -> Wording {
        Wording {
            is_japanese: self.is_japanese,
        }
    }
}
