//! The signal that tells work to stop.

use tokio_util::sync::CancellationToken;

/// Cancellation in two degrees of urgency. The process has one, and each run a child of it that can
/// be stopped alone.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// Stop at the next safe point: a model call is aborted, a tool call may finish.
    pub asked: CancellationToken,
    /// Abort the running tool call as well.
    pub deadline: CancellationToken,
}

impl Stop {
    /// Returns a child, which stops with this one and can also be stopped alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            asked: self.asked.child_token(),
            deadline: self.deadline.child_token(),
        }
    }
}
