//! Limits how many requests are at a model's server at once.
//!
//! A local server answers one request at a time, or all of them more slowly; if it alternates
//! between conversations, each finds the beginning of another one in the cache. So requests wait
//! here, where a stop ends the waiting and the time-out of a reply has not begun.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::llm::error::LlmError;

/// The slots at one server, shared by all clones.
#[derive(Clone)]
pub(crate) struct ConcurrencyLimit(Option<Arc<Semaphore>>);

/// The right to make one request; ends when dropped.
#[must_use]
pub(crate) struct Slot {
    _permit: Option<OwnedSemaphorePermit>,
}

impl ConcurrencyLimit {
    /// Returns `at_once` slots, or slots without a limit.
    pub(crate) fn new(at_once: Option<usize>) -> Self {
        let most = |at_once: usize| at_once.clamp(1, Semaphore::MAX_PERMITS);
        Self(at_once.map(|at_once| Arc::new(Semaphore::new(most(at_once)))))
    }

    /// Waits for a slot, in the order of asking.
    ///
    /// # Errors
    /// Fails if the waiting is cancelled.
    pub(crate) async fn slot(&self, cancel: &CancellationToken) -> Result<Slot, LlmError> {
        let Some(slots) = &self.0 else {
            return Ok(Slot { _permit: None });
        };
        if slots.available_permits() == 0 {
            tracing::debug!("a request waits for its turn at the model");
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(LlmError::Cancelled),
            permit = Arc::clone(slots).acquire_owned() => Ok(Slot { _permit: permit.ok() }),
        }
    }
}
