//! A task that a conversation follows, and those of them whose runs cannot be read.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::phrases::Wording;
use crate::messenger::place::Place;
use crate::task::id::TaskId;

/// Time after which a run that could not be read is looked at again where nothing happened to it.
const AGAIN_AFTER: Duration = Duration::from_mins(1);

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

/// The tasks whose runs this process could not read when it looked at them last. To fetch one that
/// is large in each round would cost much and tell nothing.
#[derive(Debug, Default)]
pub(super) struct UnreadableTasks(Mutex<HashMap<TaskId, LastLook>>);

/// A look at a run that could not be read.
#[derive(Debug)]
struct LastLook {
    at: Instant,
    /// The number of the newest fact at that time.
    newest: u64,
}

impl UnreadableTasks {
    /// Returns the number of the fact behind which something has to happen for a task to be looked
    /// at, if its run could not be read a moment ago; else 0.
    pub(super) fn seen(&self, task: &TaskId, now: Instant) -> u64 {
        let tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = tasks.get(task).filter(|last| now < last.at + AGAIN_AFTER);
        last.map_or(0, |last| last.newest)
    }

    /// Notes that the run of a task could not be read; returns whether it could be before, as far
    /// as this process knows.
    pub(super) fn note(&self, task: &TaskId, newest: u64, at: Instant) -> bool {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.insert(task.clone(), LastLook { at, newest }).is_none()
    }

    /// Notes that the run of a task could be read.
    pub(super) fn forget(&self, task: &TaskId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(task);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_cannot_be_read_is_looked_at_when_something_happens_or_after_a_while() {
        let tasks = UnreadableTasks::default();
        let task: TaskId = "github:acme/widgets#1".parse().unwrap();
        let other: TaskId = "github:acme/widgets#2".parse().unwrap();
        let now = Instant::now();
        assert_eq!(tasks.seen(&task, now), 0);
        assert!(tasks.note(&task, 7, now));
        assert_eq!((tasks.seen(&task, now), tasks.seen(&other, now)), (7, 0));
        assert!(!tasks.note(&task, 9, now), "it is told once");
        assert_eq!(tasks.seen(&task, now + AGAIN_AFTER / 2), 9);
        assert_eq!(tasks.seen(&task, now + AGAIN_AFTER), 0);
        tasks.forget(&task);
        assert_eq!(tasks.seen(&task, now), 0);
        assert!(tasks.note(&task, 9, now));
    }
}
