//! The doorbell. It only says "look": who works on what is decided by the store.

use async_channel::{Receiver, Sender};

/// Rings and hears the bell. Clones share it.
#[derive(Debug, Clone)]
pub struct Doorbell {
    ring: Sender<()>,
    hear: Receiver<()>,
}

impl Doorbell {
    /// Returns a bell that remembers up to `consumers` rings; more say nothing new.
    pub fn new(consumers: usize) -> Self {
        let (ring, hear) = async_channel::bounded(consumers.max(1));
        Self { ring, hear }
    }

    /// Wakes one waiting consumer, or the next that waits.
    pub fn ring(&self) {
        // A full channel means that every consumer will look anyway.
        let _ = self.ring.try_send(());
    }

    /// Waits for a ring.
    pub async fn heard(&self) {
        // The sender lives in `self`, so the channel cannot be closed.
        let _ = self.hear.recv().await;
    }
}
