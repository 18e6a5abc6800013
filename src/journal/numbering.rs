//! The task that has the store number and keep the facts.
//!
//! A run never waits for it: what does not fit into its queue is counted and left to the JSONL
//! file, and the count becomes a fact once the store can be written again. While the store cannot
//! be written the same facts are tried again and again, until the journal is closed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chrono::Utc;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::Message;
use super::fact::{Entry, Fact, Subject};
use crate::plain::{agreeing, counted};
use crate::store::{NewFact, Store};

/// Facts that are written in one transaction.
const BATCH: usize = 256;
/// Rest between two transactions, in which facts gather: the store has one writer at a time, and
/// runs save their work there.
const REST: Duration = Duration::from_millis(50);
/// Pause after the store could not be written.
const RETRY: Duration = Duration::from_secs(2);

pub(super) struct Numbering {
    pub(super) store: Store,
    pub(super) messages: mpsc::Receiver<Message>,
    /// Facts that did not fit into the queue.
    pub(super) lost: Arc<AtomicU64>,
    /// The number of the newest fact that this process wrote, for subscribers.
    pub(super) newest: watch::Sender<u64>,
    /// Set when nobody waits for the store to become writable any more.
    pub(super) closing: CancellationToken,
}

impl Numbering {
    /// Writes incoming facts until the journal is closed or its last clone dropped.
    pub(super) async fn run(mut self) {
        let mut batch = Vec::with_capacity(BATCH);
        while self.messages.recv_many(&mut batch, BATCH).await > 0 {
            let mut facts = Vec::with_capacity(batch.len() + 1);
            let mut closed = Vec::new();
            for message in batch.drain(..) {
                match message {
                    Message::Write(entry) => facts.extend(document(&entry)),
                    Message::Close(done) => closed.push(done),
                }
            }
            facts.extend(self.report_of_losses().as_ref().and_then(document));
            if !closed.is_empty() {
                self.messages.close();
            }
            self.write(&facts).await;
            for done in closed {
                // Whoever asked may have stopped waiting.
                let _ = done.send(());
            }
            tokio::select! {
                () = tokio::time::sleep(REST) => {}
                () = self.closing.cancelled() => {}
            }
        }
    }

    async fn write(&self, facts: &[NewFact]) {
        if facts.is_empty() {
            return;
        }
        let before = *self.newest.borrow();
        let mut was_said = false;
        let mut written = self.store.add_facts(facts).await;
        loop {
            let error = match written {
                Ok(newest) => {
                    self.newest.send_replace(newest);
                    return;
                }
                Err(error) => error,
            };
            if self.closing.is_cancelled() {
                tracing::error!(facts = facts.len(), "facts are in the journal's file alone: {error}");
                return;
            }
            if !was_said {
                tracing::error!("facts cannot be written to the store, they are tried again: {error}");
                was_said = true;
            }
            tokio::select! {
                () = tokio::time::sleep(RETRY) => {}
                () = self.closing.cancelled() => {}
            }
            written = self.store.add_facts_again(facts, before).await;
        }
    }

    fn report_of_losses(&self) -> Option<Entry> {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        (lost > 0).then(|| Entry {
            at: Utc::now(),
            subject: Subject::default(),
            fact: Fact::Warned {
                text: format!(
                    "{} {} in the journal's file alone: the store did not keep up",
                    counted(lost, "fact"),
                    agreeing(lost, "is", "are")
                ),
            },
        })
    }
}

fn document(entry: &Entry) -> Option<NewFact> {
    Some(NewFact {
        at: entry.at,
        run: entry.subject.run,
        task: entry.subject.task.clone(),
        document: serde_json::to_string(entry).ok()?,
    })
}
