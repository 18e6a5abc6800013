//! Two conversations that take turns: the model of the one lets the other go on for one turn, and
//! waits for it.

use std::sync::{Mutex, PoisonError, mpsc};
use std::time::Duration;

/// Longer than one turn of anything. One who breaks off is not waited for without end.
const PATIENCE: Duration = Duration::from_mins(2);

/// Held by the one that sets the pace.
pub struct Baton {
    go: mpsc::SyncSender<usize>,
    arrived: Mutex<mpsc::Receiver<()>>,
}

/// Held by the one that goes when it is told to.
pub struct Runner {
    go: Mutex<mpsc::Receiver<usize>>,
    arrived: mpsc::SyncSender<()>,
}

impl Baton {
    pub fn pair() -> (Self, Runner) {
        let (go, told) = mpsc::sync_channel(1);
        let (says, arrived) = mpsc::sync_channel(1);
        let baton = Self {
            go,
            arrived: Mutex::new(arrived),
        };
        let runner = Runner {
            go: Mutex::new(told),
            arrived: says,
        };
        (baton, runner)
    }

    /// Waits until the runner stands at the start, or again after a turn; tells whether it does.
    pub fn is_back(&self) -> bool {
        let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.recv_timeout(PATIENCE).is_ok()
    }

    /// Has the runner make the turn with this number; tells whether it came back.
    pub fn turn(&self, number: usize) -> bool {
        self.go.try_send(number).is_ok() && self.is_back()
    }
}

impl Runner {
    /// Says that the runner is back and waits for the number of its next turn; `None` when there is
    /// none.
    pub fn next(&self) -> Option<usize> {
        self.arrived.try_send(()).ok()?;
        let go = self.go.lock().unwrap_or_else(PoisonError::into_inner);
        go.recv_timeout(PATIENCE).ok()
    }
}
