//! How work is told to stop.

use tokio_util::sync::CancellationToken;

/// Two degrees of urgency. The program has one, and each run a child of it that stops that run
/// alone.
#[derive(Debug, Clone, Default)]
pub struct Stop {
    /// Reach the next safe point: a model call is given up at once, a tool call may finish.
    pub asked: CancellationToken,
    /// Give up the tool call as well.
    pub deadline: CancellationToken,
}

impl Stop {
    /// Returns one that is stopped with this one, and can be stopped alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            asked: self.asked.child_token(),
            deadline: self.deadline.child_token(),
        }
    }
}
