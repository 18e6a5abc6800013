//! The book: which runs there are, where they stand, and who works on them.
//!
//! SQLite in WAL mode, SQL kept portable to PostgreSQL, migrations inside the binary. A claim gives a [`Lease`] with an
//! expiry; the heartbeat extends it; nothing is saved without it. Each process also holds a lock on a file of its own below
//! `<state_dir>/workers/`: the kernel lets go of it when the process dies, however it dies, and a run whose worker
//! is dead can be claimed at once instead of after the expiry.

use std::path::Path;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::conversation::Message;
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

/// The right to work on one run. Only [`Store::claim`] makes one.
#[derive(Debug)]
pub struct Lease {
    pub run: RunId,
    pub task: TaskId,
}

/// A row of the book.
#[derive(Debug, Clone)]
pub struct Run {
    pub id: RunId,
    pub task: TaskId,
    pub title: String,
    pub state: State,
    /// What the stages have produced so far; the agent's own document.
    pub record: Value,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// Not to be claimed before, in a parked run.
    pub not_before: Option<DateTime<Utc>>,
}

/// What admitting a task led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// A new run was written.
    New(RunId),
    /// An unfinished run of the task exists; nothing was written.
    Known(RunId),
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another worker holds the run now: stop working on it, save nothing.
    #[error("the lease of run {0} was lost to another worker")]
    LeaseLost(RunId),
    #[error("the store {path}: {source}")]
    Database { path: String, source: sqlx::Error },
    #[error("the store {path}: {reason}")]
    Unusable { path: String, reason: String },
}

/// The open book. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {}

impl Store {
    /// Opens (and makes or migrates) `<state_dir>/coding-agent.db` and takes this process's worker lock.
    pub async fn open(_state_dir: &Path) -> Result<Self, StoreError> {
        todo!()
    }

    /// Writes a new run for `task` in state `Queued`, unless an unfinished one exists. Atomic between processes.
    pub async fn admit(&self, _task: &TaskId, _title: &str, _record: &Value) -> Result<Admission, StoreError> {
        todo!()
    }

    /// Claims the oldest run that is unfinished, due (`not_before`), not `Paused`, and held by no living worker.
    /// The lease lasts `ttl` unless [`Store::heartbeat`] extends it.
    pub async fn claim(&self, _ttl: Duration) -> Result<Option<(Lease, Run)>, StoreError> {
        todo!()
    }

    /// Extends the lease by `ttl` from now.
    pub async fn heartbeat(&self, _lease: &Lease, _ttl: Duration) -> Result<(), StoreError> {
        todo!()
    }

    /// Saves where the run stands. A final state ends the lease as well.
    pub async fn save(&self, _lease: &Lease, _state: State, _record: &Value) -> Result<(), StoreError> {
        todo!()
    }

    /// Gives the run back, unfinished, to be claimed again not before `not_before`.
    pub async fn release(&self, _lease: Lease, _not_before: Option<DateTime<Utc>>) -> Result<(), StoreError> {
        todo!()
    }

    /// Appends to the run's conversation, in one transaction. Costs the same whatever its length.
    pub async fn append_messages(&self, _lease: &Lease, _messages: &[Message]) -> Result<(), StoreError> {
        todo!()
    }

    /// Returns the run's conversation in order.
    pub async fn messages(&self, _run: RunId) -> Result<Vec<Message>, StoreError> {
        todo!()
    }

    /// Returns one run.
    pub async fn run(&self, _run: RunId) -> Result<Option<Run>, StoreError> {
        todo!()
    }

    /// Returns the newest runs first: of one task or of all, at most `limit`.
    pub async fn runs(&self, _task: Option<&TaskId>, _limit: u32) -> Result<Vec<Run>, StoreError> {
        todo!()
    }

    /// Returns all unfinished runs, oldest first.
    pub async fn unfinished(&self) -> Result<Vec<Run>, StoreError> {
        todo!()
    }

    /// Returns the unfinished runs that another, living worker holds: hands off their containers.
    pub async fn held_elsewhere(&self) -> Result<Vec<RunId>, StoreError> {
        todo!()
    }

    /// Returns a stored validator (ETag and body) of a conditional request, and [`Store::remember`] stores one.
    pub async fn remembered(&self, _key: &str) -> Result<Option<String>, StoreError> {
        todo!()
    }

    /// Stores `value` under `key`.
    pub async fn remember(&self, _key: &str, _value: &str) -> Result<(), StoreError> {
        todo!()
    }
}
