//! A git process with all that it started.

use rustix::process::{Pid, Signal, kill_process_group};

/// Ends a process and its descendants when dropped.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    /// `None` where the leader has ended already.
    pub(super) fn led_by(leader: Option<Pid>) -> Self {
        Self(leader)
    }

    pub(super) fn leader(&self) -> Option<Pid> {
        self.0
    }

    pub(super) fn end(&mut self) {
        if let Some(pid) = self.0.take() {
            // It may have ended by itself.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// The leader was waited for: its number may belong to somebody else from now on.
    pub(super) fn is_over(&mut self) {
        self.0 = None;
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}
