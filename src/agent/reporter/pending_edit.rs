//! An edit of a comment that is delayed to limit the rate.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Longest wait for an edit that was already sent.
const PATIENCE: Duration = Duration::from_secs(30);

/// A delayed edit; it is cancelled when dropped.
pub(crate) struct PendingEdit {
    stop: CancellationToken,
    editing: AbortOnDropHandle<()>,
}

impl PendingEdit {
    pub(crate) fn new(waiting: impl FnOnce(CancellationToken) -> JoinHandle<()>) -> Self {
        let stop = CancellationToken::new();
        Self {
            editing: AbortOnDropHandle::new(waiting(stop.clone())),
            stop,
        }
    }

    /// Cancels the edit; if it was already sent, waits for it, so that it cannot overtake the next
    /// one.
    pub(crate) async fn take_back(self) {
        self.stop.cancel();
        // If that takes longer, the drop aborts it.
        let _ = tokio::time::timeout(PATIENCE, self.editing).await;
    }
}
