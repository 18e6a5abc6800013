//! The book: which runs there are, where they stand, and who works on them.
//!
//! `SQLite` in WAL mode, SQL kept portable to `PostgreSQL`, migrations inside the binary. A claim
//! gives a [`Lease`]; nothing is saved without it, and a lease that was lost saves nothing (its
//! token is out of date).
//!
//! **One run at a time on one branch.** An issue and the pull/merge request that was opened for it
//! share one, whoever asked for work on either. A run is not claimed while another one that has
//! begun is on its branch; of two that have, the older goes on.
//!
//! **Who is alive is decided by the kernel, not by the clock.** Each open store holds a lock on a
//! file of its own below `<state_dir>/workers/`; the kernel lets go of it when the process dies,
//! however it dies. So a run whose worker is dead can be claimed at once, and a living worker never
//! loses its lease because a clock jumped or a laptop slept. The expiry counts only for workers
//! whose lock file cannot be seen from here, that is on another machine.
//!
//! The store knows nothing of agents: a run's record is their document, a request is their word.

mod followed;
mod lease;
mod open;
pub mod retention;
mod row;
#[cfg(test)]
mod tests;
mod worker;

use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, NaiveDate, Utc};
use serde_json::Value;
use sqlx::SqlitePool;
use uuid::Uuid;

use crate::conversation::{Message, Usage};
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

pub use followed::Followed;
pub use lease::Lease;
pub use open::{ExclusiveRun, try_exclusive};

/// A row of the book.
#[derive(Debug, Clone, PartialEq)]
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

/// The states that `State::is_set_aside` tells of, as SQL; a macro, because queries are put
/// together at compile time.
macro_rules! set_aside {
    () => {
        "(state LIKE 'paused:%' OR state LIKE 'awaiting%')"
    };
}
use set_aside;

/// The task whose branch runs of a task work on, as SQL: that which a pull/merge request was opened
/// for, else the task itself.
macro_rules! origin {
    ($task:literal) => {
        concat!(
            "COALESCE((SELECT followed.origin FROM followed WHERE followed.task = ",
            $task,
            "), ",
            $task,
            ")"
        )
    };
}
use origin;

/// What admitting a task led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// A new run was written.
    New(RunId),
    /// An unfinished run of the task exists, and is due from now on.
    Known(RunId),
}

/// What somebody asked of a run, in the words of whoever asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub id: Uuid,
    pub text: String,
}

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another worker holds the run now: stop working on it, save nothing.
    #[error("the lease of run {0} was lost to another worker")]
    LeaseLost(RunId),
    #[error("the store {path}: {source}")]
    Database { path: String, source: sqlx::Error },
    /// The operator; the reason says what to do.
    #[error("the store {path}: {reason}")]
    Unusable { path: String, reason: String },
}

/// The open book. Cheap to clone; the clones are one worker.
#[derive(Debug, Clone)]
pub struct Store {
    pool: SqlitePool,
    worker: Arc<worker::Worker>,
    path: PathBuf,
}

impl Store {
    /// Returns the name of this process among those that share the state folder.
    pub fn worker(&self) -> Uuid {
        self.worker.id
    }

    /// Tells whether the worker with this name lives. One that has no lock here does not, so it is
    /// of no use for workers on other machines.
    pub fn is_at_work(&self, worker: Uuid) -> bool {
        self.worker.liveness(worker) == worker::Liveness::Alive
    }

    /// Writes a new run for `task` in state `Queued`, unless an unfinished one exists; that one
    /// becomes due, should it have been put back: whoever asks again does not want to wait. Atomic
    /// between processes.
    pub async fn admit(&self, task: &TaskId, title: &str, record: &Value) -> Result<Admission, StoreError> {
        let run = RunId::new();
        let now = row::micros(Utc::now());
        let mut transaction = self.begin().await?;
        let inserted = sqlx::query(
            "INSERT INTO runs (id, task, title, state, record, created_at, updated_at)
             VALUES ($1, $2, $3, $4, $5, $6, $6)
             ON CONFLICT (task) WHERE finished_at IS NULL DO NOTHING",
        )
        .bind(run.to_string())
        .bind(task.to_string())
        .bind(title)
        .bind(State::Queued.to_string())
        .bind(record.to_string())
        .bind(now)
        .execute(&mut *transaction)
        .await
        .map_err(|error| self.failed(error))?;
        let admission = if inserted.rows_affected() == 1 {
            Admission::New(run)
        } else {
            let known: String = sqlx::query_scalar(
                "UPDATE runs SET not_before = NULL WHERE task = $1 AND finished_at IS NULL RETURNING id",
            )
            .bind(task.to_string())
            .fetch_one(&mut *transaction)
            .await
            .map_err(|error| self.failed(error))?;
            Admission::Known(self.run_id(&known)?)
        };
        transaction.commit().await.map_err(|error| self.failed(error))?;
        Ok(admission)
    }

    /// Returns the run's conversation in order.
    pub async fn messages(&self, run: RunId) -> Result<Vec<Message>, StoreError> {
        let rows: Vec<String> = sqlx::query_scalar("SELECT message FROM messages WHERE run = $1 ORDER BY position")
            .bind(run.to_string())
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        rows.iter()
            .map(|text| serde_json::from_str(text).map_err(|error| self.unreadable(&run.to_string(), &error)))
            .collect()
    }

    /// Returns one run.
    pub async fn run(&self, run: RunId) -> Result<Option<Run>, StoreError> {
        let row = sqlx::query("SELECT * FROM runs WHERE id = $1")
            .bind(run.to_string())
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        row.map(|row| self.read(&row)).transpose()
    }

    /// Returns the newest runs first: of one task or of all, at most `limit`.
    pub async fn runs(&self, task: Option<&TaskId>, limit: u32) -> Result<Vec<Run>, StoreError> {
        let query = match task {
            Some(task) => sqlx::query("SELECT * FROM runs WHERE task = $2 ORDER BY id DESC LIMIT $1")
                .bind(i64::from(limit))
                .bind(task.to_string()),
            None => sqlx::query("SELECT * FROM runs ORDER BY id DESC LIMIT $1").bind(i64::from(limit)),
        };
        let rows = query.fetch_all(&self.pool).await.map_err(|error| self.failed(error))?;
        rows.iter().map(|row| self.read(row)).collect()
    }

    /// Returns the runs that wait for people, oldest first.
    pub async fn set_aside(&self) -> Result<Vec<RunId>, StoreError> {
        let rows: Vec<String> = sqlx::query_scalar(concat!(
            "SELECT id FROM runs WHERE finished_at IS NULL AND lease_token IS NULL AND ",
            set_aside!(),
            " ORDER BY id"
        ))
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.failed(error))?;
        rows.iter().map(|id| self.run_id(id)).collect()
    }

    /// Returns the runs that are put back until later than `now`, oldest first.
    pub async fn parked(&self, now: DateTime<Utc>) -> Result<Vec<RunId>, StoreError> {
        let rows: Vec<String> = sqlx::query_scalar(concat!(
            "SELECT id FROM runs WHERE finished_at IS NULL AND lease_token IS NULL AND task NOT LIKE 'local:%'
             AND not_before > $1 AND NOT ",
            set_aside!(),
            " ORDER BY id"
        ))
        .bind(row::micros(now))
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.failed(error))?;
        rows.iter().map(|id| self.run_id(id)).collect()
    }

    /// Returns the newest unfinished run of a task.
    pub async fn unfinished_of(&self, task: &TaskId) -> Result<Option<Run>, StoreError> {
        let row = sqlx::query("SELECT * FROM runs WHERE task = $1 AND finished_at IS NULL")
            .bind(task.to_string())
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        row.map(|row| self.read(&row)).transpose()
    }

    /// Books tokens on a day.
    pub async fn use_on(&self, day: NaiveDate, usage: &Usage) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO used (day, input, output, cached) VALUES ($1, $2, $3, $4)
             ON CONFLICT (day) DO UPDATE SET input = used.input + excluded.input, output = used.output + excluded.output,
                 cached = used.cached + excluded.cached",
        )
        .bind(day.to_string())
        .bind(usage.input.cast_signed())
        .bind(usage.output.cast_signed())
        .bind(usage.cached.cast_signed())
        .execute(&self.pool)
        .await
        .map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Returns what was booked on a day.
    pub async fn used_on(&self, day: NaiveDate) -> Result<Usage, StoreError> {
        let row: Option<(i64, i64, i64)> = sqlx::query_as("SELECT input, output, cached FROM used WHERE day = $1")
            .bind(day.to_string())
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        let (input, output, cached) = row.unwrap_or_default();
        Ok(Usage {
            input: input.unsigned_abs(),
            output: output.unsigned_abs(),
            cached: cached.unsigned_abs(),
        })
    }

    /// Returns all unfinished runs, oldest first.
    pub async fn unfinished(&self) -> Result<Vec<Run>, StoreError> {
        let rows = sqlx::query("SELECT * FROM runs WHERE finished_at IS NULL ORDER BY id")
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        rows.iter().map(|row| self.read(row)).collect()
    }

    /// Tells whether another living process has this store open.
    pub fn has_other_workers(&self) -> Result<bool, StoreError> {
        self.worker
            .has_others()
            .map_err(|error| self.failed(sqlx::Error::Io(error)))
    }

    /// Leaves a request for whoever works on the run, now or later. The words are the caller's.
    pub async fn ask(&self, run: RunId, request: &str) -> Result<(), StoreError> {
        sqlx::query("INSERT INTO requests (id, run, request) VALUES ($1, $2, $3)")
            .bind(Uuid::now_v7().to_string())
            .bind(run.to_string())
            .bind(request)
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Returns the requests nobody has answered yet, oldest first.
    pub async fn requests(&self, run: RunId) -> Result<Vec<Request>, StoreError> {
        let rows: Vec<(String, String)> = sqlx::query_as("SELECT id, request FROM requests WHERE run = $1 ORDER BY id")
            .bind(run.to_string())
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        rows.into_iter()
            .map(|(id, text)| {
                let id = id.parse().map_err(|error: uuid::Error| self.unreadable(&id, &error))?;
                Ok(Request { id, text })
            })
            .collect()
    }

    /// Takes a request off, after it was acted on: a crash before repeats the request instead of
    /// losing it.
    pub async fn answered(&self, request: Uuid) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM requests WHERE id = $1")
            .bind(request.to_string())
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Returns what an earlier process stored under `key`.
    pub async fn remembered(&self, key: &str) -> Result<Option<String>, StoreError> {
        sqlx::query_scalar("SELECT value FROM remembered WHERE name = $1")
            .bind(key)
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.failed(error))
    }

    /// Stores `value` under `key`, for the next process.
    pub async fn remember(&self, key: &str, value: &str) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO remembered (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        )
        .bind(key)
        .bind(value)
        .execute(&self.pool)
        .await
        .map_err(|error| self.failed(error))?;
        Ok(())
    }
}
