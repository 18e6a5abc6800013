//! The process group of a git process.

use rustix::process::{Pid, Signal, kill_process_group};

/// Kills a process and its descendants when dropped.
#[derive(Debug)]
pub(in crate::repository) struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// Takes over the group of `leader`; `None` if that has ended already.
    pub(in crate::repository) fn led_by(leader: Option<Pid>) -> Self {
        Self(leader)
    }

    pub(in crate::repository) fn leader(&self) -> Option<Pid> {
        self.0
    }

    pub(in crate::repository) fn end(&mut self) {
        if let Some(pid) = self.0.take() {
            // Fails if it has ended by itself.
            let _ = kill_process_group(pid, Signal::KILL);
        }
    }

    /// Marks the group as ended. It must be called once the leader was waited for, since its pid
    /// may be reused from then on.
    pub(in crate::repository) fn is_over(&mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.end();
    }
}
