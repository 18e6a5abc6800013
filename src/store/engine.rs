//! The seam to a database: what the store needs of one besides SQL that all understand.
//!
//! Guarantees that an implementation gives: a transaction is written whole or not at all, and what
//! is written in it was not changed by another one since it was read; of two transactions for
//! claims the second begins when the first has ended, so that no two workers find the same branch
//! free; errors are [`StoreError`]s that say what the operator can do.

use std::collections::HashMap;
use std::fmt::Debug;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::watch;
use uuid::Uuid;

use super::StoreError;
use super::sql::{Row, Statement};

/// An open database.
#[async_trait]
pub(super) trait Engine: Debug + Send + Sync {
    /// Runs a statement by itself; returns how many rows it changed.
    async fn execute(&self, statement: Statement) -> Result<u64, StoreError>;

    /// Runs a query by itself.
    async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, StoreError>;

    /// Begins a transaction; one that is dropped before its commit has changed nothing.
    async fn begin(&self, purpose: Purpose) -> Result<Box<dyn Transaction>, StoreError>;

    /// Returns the time by which leases are judged: the same clock for all that share the store.
    async fn now(&self) -> Result<DateTime<Utc>, StoreError>;

    /// Removes what was deleted from all files of the database; returns whether nothing is left.
    async fn settle(&self) -> Result<bool, StoreError>;

    fn liveness(&self) -> &dyn Liveness;

    /// Has the numbers of facts go on behind the largest that is there: some were written with
    /// theirs.
    async fn count_on(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// Wakes the workers of other processes, where the database can; one that is not reached looks
    /// by the clock.
    async fn ring(&self) {}

    /// Returns a number that changes when there may be something to work on; `None` where the
    /// database tells nothing.
    fn rung(&self) -> Option<watch::Receiver<u64>> {
        None
    }
}

/// The purpose of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Write,
    /// Finding a run that nobody works on: one at a time among all workers.
    Claim,
    /// Numbering facts: one at a time among all workers, or a reader could see a number before a
    /// smaller one is stored.
    Number,
}

/// Several statements that take effect together.
#[async_trait]
pub(super) trait Transaction: Send {
    async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError>;
    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError>;
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;
}

/// The workers that share the store, this process among them, and which of them are alive.
#[async_trait]
pub(super) trait Liveness: Debug + Send + Sync {
    /// Returns the name of this process.
    fn worker(&self) -> Uuid;

    /// Returns the name of this machine: workers of different machines cannot see each other.
    fn host(&self) -> &str;

    /// Tells whether a worker is alive.
    async fn of(&self, worker: Uuid) -> Alive;

    /// Tells of each of these workers whether it is alive.
    async fn of_all(&self, workers: &[Uuid]) -> Result<HashMap<Uuid, Alive>, StoreError> {
        let mut found = HashMap::new();
        for worker in workers {
            found.insert(*worker, self.of(*worker).await);
        }
        Ok(found)
    }

    /// Tells whether another living worker can be seen.
    async fn has_others(&self) -> Result<bool, StoreError>;

    /// Removes the traces of a dead worker, once its leases are free.
    async fn bury(&self, worker: Uuid);
}

/// Whether a worker is alive, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alive {
    Yes,
    No,
    /// Its session with the database is there. Something between may keep up the session of one
    /// that is gone, so a lease that expired long ago counts no more.
    Connected,
    /// It cannot be seen from here, so only the expiry of its lease counts.
    Unseen,
}
