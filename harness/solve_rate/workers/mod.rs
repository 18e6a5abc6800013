//! The three ways of working on a task, each with the same model, files and limits.

pub mod containers; // what the engine still has of a worker
pub mod doubts; // whether an end says what was not proven
pub mod judged; // both kinds of tests on a result
pub mod program; // the program works
pub mod floor; // the model alone works
pub mod peer; // mini-swe-agent works

use std::time::{Duration, Instant};

use crate::server::Server;
use crate::setting::Limits;
use crate::task::Task;

/// A task that is to be worked on.
pub struct Job<'a> {
    pub server: &'a Server,
    pub task: &'a Task,
    pub limits: Limits,
    /// The end of the whole measurement.
    pub until: Option<Instant>,
}

impl Job<'_> {
    /// Returns how long a worker may take that does not end by itself.
    pub fn patience(&self) -> Duration {
        self.within(self.limits.patience())
    }

    /// Returns the longest time of one reply.
    pub fn reply(&self) -> Duration {
        self.within(self.limits.reply())
    }

    fn within(&self, time: Duration) -> Duration {
        let left = self.until.map(|until| until.saturating_duration_since(Instant::now()));
        left.map_or(time, |left| left.min(time))
    }
}
