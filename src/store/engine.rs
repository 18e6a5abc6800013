//! The seam to a database: what the store needs of one besides SQL that all understand.
//!
//! Guarantees that an implementation gives: a transaction is written whole or not at all, and what
//! is written in it was not changed by another one since it was read; of two transactions for
//! claims the second begins when the first has ended, so that no two workers find the same branch
//! free; errors are [`StoreError`]s that say what the operator can do.

use std::fmt::Debug;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
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

    /// Returns the time by which leases are judged: the same clock for all who share the store.
    async fn now(&self) -> Result<DateTime<Utc>, StoreError>;

    /// Takes what was deleted out of all files of the database; returns whether nothing is left.
    async fn settle(&self) -> Result<bool, StoreError>;

    fn liveness(&self) -> &dyn Liveness;
}

/// What a transaction is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    Write,
    /// To find a run that nobody works on: one at a time among all workers.
    Claim,
    /// To number facts: one at a time among all workers, or a reader could see a number before a
    /// smaller one is there.
    Number,
}

/// Several statements that count together.
#[async_trait]
pub(super) trait Transaction: Send {
    async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError>;
    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError>;
    async fn commit(self: Box<Self>) -> Result<(), StoreError>;
}

/// Who is alive among the workers that share the store, and this process's place among them.
#[async_trait]
pub(super) trait Liveness: Debug + Send + Sync {
    /// Returns the name of this process.
    fn worker(&self) -> Uuid;

    /// Returns what tells machines apart whose workers do not see each other.
    fn host(&self) -> &str;

    /// Tells whether a worker lives.
    async fn of(&self, worker: Uuid) -> Alive;

    /// Tells whether a living worker besides this one is seen.
    async fn has_others(&self) -> Result<bool, StoreError>;

    /// Clears away what a dead worker left, once its leases are free.
    async fn bury(&self, worker: Uuid);
}

/// What is known of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Alive {
    Yes,
    No,
    /// It cannot be seen from here: only its lease says how long it is to be believed.
    Unseen,
}
