//! Limits how many requests are at a model's server at once.
//!
//! A local server answers one request at a time, or all of them more slowly; if it alternates
//! between conversations, each finds the beginning of another one in the cache. So requests wait
//! here, where a stop ends the waiting and the time-out of a reply has not begun.

use std::sync::{Arc, OnceLock};

use async_trait::async_trait;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::llm::error::LlmError;

/// Places at servers that the workers of several machines share.
#[async_trait]
pub trait SharedPlaces: Send + Sync {
    /// Waits for one of `at_once` places at the server with this name; dropping what is returned
    /// gives it back.
    async fn place(&self, server: &str, at_once: u32) -> Box<dyn Send + Sync>;
}

/// The slots at one server, shared by all clones.
#[derive(Clone)]
pub(crate) struct ConcurrencyLimit {
    own: Option<Arc<Semaphore>>,
    at_once: u32,
    /// The name of the server among the workers of all machines, where these share its slots.
    shared: Arc<OnceLock<(String, Arc<dyn SharedPlaces>)>>,
}

/// The right to make one request; ends when dropped.
#[must_use]
pub(crate) struct Slot {
    _permit: Option<OwnedSemaphorePermit>,
    _place: Option<Box<dyn Send + Sync>>,
}

impl ConcurrencyLimit {
    /// Returns `at_once` slots, or slots without a limit.
    pub(crate) fn new(at_once: Option<usize>) -> Self {
        let most = |at_once: usize| at_once.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            own: at_once.map(|at_once| Arc::new(Semaphore::new(most(at_once)))),
            at_once: at_once.map_or(u32::MAX, |at_once| u32::try_from(most(at_once)).unwrap_or(u32::MAX)),
            shared: Arc::default(),
        }
    }

    /// Has the workers of several machines share these slots, from now on and in all clones.
    pub(crate) fn share(&self, server: String, places: Arc<dyn SharedPlaces>) {
        if self.own.is_some() {
            // Shared once at the start; a second time would say the same.
            let _ = self.shared.set((server, places));
        }
    }

    /// Waits for a slot, in the order of asking.
    ///
    /// # Errors
    /// Fails if the waiting is cancelled.
    pub(crate) async fn slot(&self, cancel: &CancellationToken) -> Result<Slot, LlmError> {
        let Some(slots) = &self.own else {
            return Ok(Slot {
                _permit: None,
                _place: None,
            });
        };
        if slots.available_permits() == 0 {
            tracing::debug!("a request waits for its turn at the model");
        }
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(LlmError::Cancelled),
            slot = async {
                let permit = Arc::clone(slots).acquire_owned().await.ok();
                let place = match self.shared.get() {
                    Some((server, places)) => Some(places.place(server, self.at_once).await),
                    None => None,
                };
                Slot { _permit: permit, _place: place }
            } => Ok(slot),
        }
    }
}
