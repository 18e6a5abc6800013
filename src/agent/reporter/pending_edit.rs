//! An edit of a comment that waits until it may be made.

use std::time::Duration;

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

/// Longest wait for an edit that is on its way.
const PATIENCE: Duration = Duration::from_secs(30);

/// An edit that waits for its time. Dropped, it is not made.
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

    /// Takes it back; one that is on its way already arrives first, so that it does not overtake
    /// what comes next.
    pub(crate) async fn take_back(self) {
        self.stop.cancel();
        // One that takes longer is cut off by the drop.
        let _ = tokio::time::timeout(PATIENCE, self.editing).await;
    }
}
