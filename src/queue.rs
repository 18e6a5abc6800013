//! Wakes consumers. A wake-up only says "look": who works on what is decided by the store, so one
//! that is lost or comes twice costs a look at most.

use async_channel::{Receiver, Sender};

/// Wake-ups from tasks that find work to tasks that wait for it. Clones share them.
#[derive(Debug, Clone)]
pub struct WakeUps {
    sender: Sender<()>,
    receiver: Receiver<()>,
}

impl WakeUps {
    /// Stores up to `consumers` wake-ups while all consumers are busy; more would say nothing new.
    pub fn new(consumers: usize) -> Self {
        let (sender, receiver) = async_channel::bounded(consumers.max(1));
        Self { sender, receiver }
    }

    /// Wakes one waiting consumer, or the next that waits.
    pub fn wake_one(&self) {
        // A full channel means that every consumer will look anyway.
        let _ = self.sender.try_send(());
    }

    /// Waits for a wake-up.
    pub async fn woken(&self) {
        // The sender lives in `self`, so the channel cannot be closed.
        let _ = self.receiver.recv().await;
    }
}
