//! Facts as they come, for many readers at once.
//!
//! One reader asks the store for all of them, and hands each fact on. Whoever begins behind, or
//! falls behind, reads the store by themselves until they are level again: nobody misses a fact, a
//! slow reader costs the memory of a page, and the others wait for nobody.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream::unfold;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast};

use crate::journal::Journal;
use crate::journal::subscription::Numbered;
use crate::store::{FactFilter, NumberedFact, Store};

/// Facts that wait for a reader before it has to read the store.
const WAITING: usize = 512;
/// Facts that are read at once.
const PAGE: u32 = 128;
/// Readers at once.
const MOST_READERS: usize = 256;
/// Pause after the store could not be read.
const RETRY: std::time::Duration = std::time::Duration::from_secs(1);

/// Hands facts on.
pub(super) struct Hub {
    journal: Journal,
    store: Store,
    sender: broadcast::Sender<Arc<Numbered>>,
    places: Arc<Semaphore>,
}

/// A reader of facts.
struct Reader {
    store: Store,
    filter: FactFilter,
    /// The number up to which facts were handed out.
    read: u64,
    page: VecDeque<NumberedFact>,
    /// Whether all is handed out that was in the store when `news` began.
    is_level: bool,
    news: broadcast::Receiver<Arc<Numbered>>,
    _place: OwnedSemaphorePermit,
}

impl Hub {
    pub(super) fn new(journal: Journal, store: Store) -> Self {
        Self {
            journal,
            store,
            sender: broadcast::Sender::new(WAITING),
            places: Arc::new(Semaphore::new(MOST_READERS)),
        }
    }

    /// Reads facts as they come, for ever.
    pub(super) async fn listen(&self) {
        let newest = loop {
            match self.store.newest_fact().await {
                Ok(newest) => break newest,
                Err(error) => {
                    tracing::warn!("facts cannot be read, they are looked for again: {error}");
                    tokio::time::sleep(RETRY).await;
                }
            }
        };
        let mut facts = self.journal.subscribe(&self.store, FactFilter::All, newest);
        loop {
            let fact = facts.next().await;
            // Nobody may be listening.
            let _ = self.sender.send(Arc::new(fact));
        }
    }

    /// Returns the facts after the number `after`, and those to come; `None` if there are too many
    /// readers.
    pub(super) fn read(&self, filter: FactFilter, after: u64) -> Option<impl Stream<Item = NumberedFact> + use<>> {
        let place = Arc::clone(&self.places).try_acquire_owned().ok()?;
        let reader = Reader {
            store: self.store.clone(),
            filter,
            read: after,
            page: VecDeque::new(),
            is_level: false,
            news: self.sender.subscribe(),
            _place: place,
        };
        Some(unfold(reader, async |mut reader: Reader| {
            let fact = reader.next().await?;
            Some((fact, reader))
        }))
    }
}

impl Reader {
    /// Waits for the next fact; `None` at the end of the server.
    async fn next(&mut self) -> Option<NumberedFact> {
        loop {
            if let Some(fact) = self.page.pop_front() {
                self.read = fact.sequence;
                return Some(fact);
            }
            if !self.is_level {
                self.catch_up().await;
                continue;
            }
            match self.news.recv().await {
                Ok(fact) if fact.sequence > self.read && is_wanted(&self.filter, &fact) => {
                    self.read = fact.sequence;
                    let document = serde_json::to_string(&fact.entry).ok()?;
                    return Some(NumberedFact {
                        sequence: fact.sequence,
                        document,
                    });
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.is_level = false,
                Err(RecvError::Closed) => return None,
            }
        }
    }

    async fn catch_up(&mut self) {
        match self.store.facts(self.read, &self.filter, PAGE).await {
            Ok(facts) if facts.is_empty() => self.is_level = true,
            Ok(facts) => self.page = facts.into(),
            Err(error) => {
                tracing::debug!("facts cannot be read, they are looked for again: {error}");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

fn is_wanted(filter: &FactFilter, fact: &Numbered) -> bool {
    match filter {
        FactFilter::All => true,
        FactFilter::OfRun(run) => fact.entry.subject.run == Some(*run),
        FactFilter::OfTask(task) => fact.entry.subject.task.as_ref() == Some(task),
    }
}
