//! The signal that tells work to stop.

use tokio_util::sync::CancellationToken;

/// Cancellation in two degrees of urgency. The process has one, and each run a child of it that can
/// be stopped alone.
#[derive(Debug, Clone)]
pub struct Stop {
    /// Stop at the next safe point: a model call is aborted, a tool call may finish.
    pub asked: CancellationToken,
    /// Abort the running tool call as well.
    pub deadline: CancellationToken,
    /// The whole process is asked to stop, and not only a run of it: for what a run does because it
    /// was stopped.
    pub process: CancellationToken,
}

impl Default for Stop {
    fn default() -> Self {
        let asked = CancellationToken::new();
        Self {
            process: asked.clone(),
            asked,
            deadline: CancellationToken::new(),
        }
    }
}

impl Stop {
    /// Returns a child, which stops with this one and can also be stopped alone.
    #[must_use]
    pub fn child(&self) -> Self {
        Self {
            asked: self.asked.child_token(),
            deadline: self.deadline.child_token(),
            process: self.process.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stop_of_a_run_is_none_of_the_process() {
        let process = Stop::default();
        let (stopped, other) = (process.child(), process.child());
        stopped.asked.cancel();
        let asked = |stop: &Stop| (stop.asked.is_cancelled(), stop.process.is_cancelled());
        assert_eq!([&stopped, &other].map(asked), [(true, false), (false, false)]);
        process.asked.cancel();
        assert_eq!([&stopped, &other].map(asked), [(true, true); 2]);
    }
}
