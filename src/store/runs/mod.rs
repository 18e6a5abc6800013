//! The rows of the table of runs: admitting a task, and finding its runs again.

pub(super) mod holding; // the leases that tasks of this process hold
pub(super) mod history; // runs as they are listed for people
pub(super) mod followed; // which pull/merge requests are looked after
pub(super) mod unfinished_work; // the work of runs that somebody else may resume
pub(super) mod lease; // claiming a run, keeping it, and writing with the right to
pub(super) mod turns; // what one worker at a time does, or few do at once
mod records; // brings records of earlier versions up to date

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::conversation::Message;
use crate::store::sql::{Row, Statement};
use crate::store::{Store, StoreError, again};
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

/// The format of the records that this program writes, and the latest that it understands. It is
/// raised with every change that a program of the version before would lose or misread: such a
/// program leaves the run alone, while machines that share a store are updated one by one.
pub(in crate::store) const FORMAT: i64 = 1;

/// A row of the table of runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub id: RunId,
    pub task: TaskId,
    pub title: String,
    pub state: State,
    /// The results of the stages so far; a document of the agent's own.
    pub record: Value,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    /// The time before which a postponed run is not claimed.
    pub not_before: Option<DateTime<Utc>>,
}

/// The outcome of admitting a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// A new run was written.
    New(RunId),
    /// An unfinished run of the task exists, and is due from now on.
    Known(RunId),
}

/// The states that `State::is_set_aside` tells of, as SQL; a macro, because queries are put
/// together at compile time.
macro_rules! set_aside {
    () => {
        "(state LIKE 'paused:%' OR state LIKE 'awaiting%')"
    };
}
pub(super) use set_aside;

/// The columns that [`Run::read`] reads, in its order.
macro_rules! select_runs {
    ($rest:literal) => {
        concat!(
            "SELECT id, task, title, state, record, created_at, updated_at, not_before FROM runs ",
            $rest
        )
    };
}
pub(super) use select_runs;

impl Run {
    pub(super) fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.parsed(0)?,
            task: row.parsed(1)?,
            title: row.text(2)?.to_owned(),
            state: row.parsed(3)?,
            record: row.document(4)?,
            created_at: row.time(5)?.unwrap_or_default(),
            updated_at: row.time(6)?.unwrap_or_default(),
            not_before: row.time(7)?,
        })
    }
}

impl Store {
    /// Writes a new run for `task` in state `Queued`, unless an unfinished one exists. That one
    /// becomes due if it was postponed, since whoever asks again does not want to wait. Atomic
    /// between processes.
    pub async fn admit(&self, task: &TaskId, title: &str, record: &Value) -> Result<Admission, StoreError> {
        let admission = again!(self.admit_once(task, title, record))?;
        self.engine.ring().await;
        Ok(admission)
    }

    async fn admit_once(&self, task: &TaskId, title: &str, record: &Value) -> Result<Admission, StoreError> {
        let run = RunId::new();
        let mut transaction = self.begin().await?;
        let admission = loop {
            let insert = Statement::new(
                "INSERT INTO runs (id, task, title, state, record, created_at, updated_at, format)
                 VALUES ($1, $2, $3, $4, $5, $6, $6, $7)
                 ON CONFLICT (task) WHERE finished_at IS NULL DO NOTHING",
            );
            let row = insert.with(run).with(task).with(title).with(State::Queued);
            if transaction
                .execute(row.with(record.to_string()).with(Utc::now()).with(FORMAT))
                .await?
                == 1
            {
                break Admission::New(run);
            }
            let due = Statement::new(
                "UPDATE runs SET not_before = NULL WHERE task = $1 AND finished_at IS NULL RETURNING id",
            );
            // None where it ended between the two statements, and the next round writes a new one.
            if let Some(row) = transaction.fetch(due.with(task)).await?.first() {
                break Admission::Known(row.parsed(0)?);
            }
        };
        transaction.commit().await?;
        Ok(admission)
    }

    /// Returns the run's conversation in order.
    pub async fn messages(&self, run: RunId) -> Result<Vec<Message>, StoreError> {
        let query = Statement::new("SELECT run, message FROM messages WHERE run = $1 ORDER BY position").with(run);
        self.fetch(query).await?.iter().map(|row| row.document(1)).collect()
    }

    /// Returns one run.
    pub async fn run(&self, run: RunId) -> Result<Option<Run>, StoreError> {
        let query = Statement::new(select_runs!("WHERE id = $1")).with(run);
        self.fetch_first(query).await?.as_ref().map(Run::read).transpose()
    }

    /// Returns the newest runs first: of one task or of all, at most `limit`.
    pub async fn runs(&self, task: Option<&TaskId>, limit: u32) -> Result<Vec<Run>, StoreError> {
        let query = match task {
            Some(task) => Statement::new(select_runs!("WHERE task = $2 ORDER BY id DESC LIMIT $1"))
                .with(limit)
                .with(task),
            None => Statement::new(select_runs!("ORDER BY id DESC LIMIT $1")).with(limit),
        };
        self.fetch(query).await?.iter().map(Run::read).collect()
    }

    /// Returns the runs that wait for people, oldest first; none that a newer program has worked
    /// on, since its state may be unknown here.
    pub async fn set_aside(&self) -> Result<Vec<Run>, StoreError> {
        let query = Statement::new(concat!(
            select_runs!("WHERE finished_at IS NULL AND lease_token IS NULL AND format <= $1 AND "),
            set_aside!(),
            " ORDER BY id"
        ));
        self.fetch(query.with(FORMAT)).await?.iter().map(Run::read).collect()
    }

    /// Returns the runs that are postponed until later than `now`, oldest first; without those that
    /// wait for people.
    pub async fn parked(&self, now: DateTime<Utc>) -> Result<Vec<Run>, StoreError> {
        let query = Statement::new(concat!(
            select_runs!(
                "WHERE finished_at IS NULL AND lease_token IS NULL AND task NOT LIKE 'local:%'
                 AND not_before > $1 AND format <= $2 AND NOT "
            ),
            set_aside!(),
            " ORDER BY id"
        ));
        let query = query.with(now).with(FORMAT);
        self.fetch(query).await?.iter().map(Run::read).collect()
    }

    /// Returns the runs that were begun and are not postponed beyond `now`, oldest first; with
    /// those that wait for people, whose ends may be due as well.
    pub async fn due_again(&self, now: DateTime<Utc>) -> Result<Vec<Run>, StoreError> {
        let query = Statement::new(select_runs!(
            "WHERE finished_at IS NULL AND lease_token IS NULL AND task NOT LIKE 'local:%'
             AND (not_before <= $1 OR not_before IS NULL AND state <> 'queued') AND format <= $2 ORDER BY id"
        ));
        let query = query.with(now).with(FORMAT);
        self.fetch(query).await?.iter().map(Run::read).collect()
    }

    /// Makes a run due that was postponed until later, and that nobody works on; returns false if
    /// it is none of these.
    pub async fn make_due(&self, run: RunId) -> Result<bool, StoreError> {
        let update = Statement::new(
            "UPDATE runs SET not_before = $2
             WHERE id = $1 AND finished_at IS NULL AND lease_token IS NULL AND not_before > $2",
        );
        let now = self.engine.now().await?;
        let is_due = self.execute(update.with(run).with(now)).await? == 1;
        if is_due {
            self.engine.ring().await;
        }
        Ok(is_due)
    }

    /// Returns the newest unfinished run of a task.
    pub async fn unfinished_of(&self, task: &TaskId) -> Result<Option<Run>, StoreError> {
        let query = Statement::new(select_runs!("WHERE task = $1 AND finished_at IS NULL")).with(task);
        self.fetch_first(query).await?.as_ref().map(Run::read).transpose()
    }

    /// Returns all unfinished runs, oldest first.
    pub async fn unfinished(&self) -> Result<Vec<Run>, StoreError> {
        let query = Statement::new(select_runs!("WHERE finished_at IS NULL ORDER BY id"));
        self.fetch(query).await?.iter().map(Run::read).collect()
    }
}
