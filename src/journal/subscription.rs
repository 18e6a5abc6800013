//! Facts as they come, from any number on.
//!
//! A subscriber reads the store; what this process writes only wakes it. So it misses nothing that
//! it was too slow for, goes on after a restart where it was, and is told of what other processes
//! write, a moment later.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::watch;

use super::fact::Entry;
use crate::store::{FactFilter, Store};

/// Interval between looks for facts that other processes wrote.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Facts that are read at once.
const PAGE: u32 = 256;

/// A fact with its number.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbered {
    pub sequence: u64,
    pub entry: Entry,
}

/// The facts behind a number, in their order.
#[derive(Debug)]
pub struct Subscription {
    store: Store,
    news: watch::Receiver<u64>,
    filter: FactFilter,
    /// The number up to which the store was read.
    read: u64,
    ready: VecDeque<Numbered>,
    /// Whether the last look failed, which is logged once.
    is_failing: bool,
}

impl Subscription {
    pub(super) fn new(store: Store, news: watch::Receiver<u64>, filter: FactFilter, after: u64) -> Self {
        Self {
            store,
            news,
            filter,
            read: after,
            ready: VecDeque::new(),
            is_failing: false,
        }
    }

    /// Waits for the next fact, for ever if necessary. A store that cannot be read is tried again
    /// later. Dropping the future loses no fact.
    pub async fn next(&mut self) -> Numbered {
        loop {
            if let Some(fact) = self.ready.pop_front() {
                return fact;
            }
            // Before the look: what is written behind it wakes the wait.
            self.news.mark_unchanged();
            if self.look().await {
                continue;
            }
            let writer_is_gone = tokio::select! {
                woken = self.news.changed() => woken.is_err(),
                () = tokio::time::sleep(LOOK_EVERY) => false,
            };
            if writer_is_gone {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }

    /// Returns the available facts without waiting, oldest first, at most one page.
    pub async fn take(&mut self) -> Vec<Numbered> {
        if self.ready.is_empty() {
            self.look().await;
        }
        self.ready.drain(..).collect()
    }

    /// Reads a page; returns whether it had any facts.
    async fn look(&mut self) -> bool {
        let found = self.store.facts(self.read, &self.filter, PAGE).await;
        let was_failing = std::mem::replace(&mut self.is_failing, found.is_err());
        let facts = match found {
            Ok(facts) => facts,
            Err(error) if was_failing => {
                tracing::debug!("facts still cannot be read: {error}");
                return false;
            }
            Err(error) => {
                tracing::warn!("facts cannot be read, they are looked for again every second: {error}");
                return false;
            }
        };
        let Some(last) = facts.last() else { return false };
        self.read = last.sequence;
        // One that a newer program wrote is passed over.
        let read = facts.into_iter().filter_map(|fact| {
            let entry = serde_json::from_str(&fact.document).ok()?;
            let sequence = fact.sequence;
            Some(Numbered { sequence, entry })
        });
        self.ready.extend(read);
        true
    }
}
