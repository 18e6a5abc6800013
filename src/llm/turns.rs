//! Limits how many requests are at a model's server at once.
//!
//! A local server answers one request at a time, or all of them more slowly; if it alternates
//! between conversations, each finds the beginning of another one in the cache. So requests wait
//! here, where a stop ends the waiting and the time-out of a reply has not begun.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use super::LlmError;

/// The turns at one server, shared by all clones.
#[derive(Clone)]
pub(super) struct Turns(Option<Arc<Semaphore>>);

/// The right to make one request; ends when dropped.
#[must_use]
pub(super) struct Turn {
    _permit: Option<OwnedSemaphorePermit>,
}

impl Turns {
    /// Returns `at_once` turns, or turns without a limit.
    pub(super) fn new(at_once: Option<usize>) -> Self {
        let most = |at_once: usize| at_once.clamp(1, Semaphore::MAX_PERMITS);
        Self(at_once.map(|at_once| Arc::new(Semaphore::new(most(at_once)))))
    }

    /// Waits for a turn, in the order of asking.
    ///
    /// # Errors
    /// Fails if the waiting is cancelled.
    pub(super) async fn next(&self, cancel: &CancellationToken) -> Result<Turn, LlmError> {
        let Some(turns) = &self.0 else {
            return Ok(Turn { _permit: None });
        };
        if turns.available_permits() == 0 {
            tracing::debug!("a request waits for its turn at the model");
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(LlmError::Cancelled),
            permit = Arc::clone(turns).acquire_owned() => Ok(Turn { _permit: permit.ok() }),
        }
    }
}
