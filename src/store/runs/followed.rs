//! The pull/merge requests that are followed. The notes on one are the caller's own document.

use chrono::{DateTime, Utc};
use serde_json::Value;

use crate::store::sql::{Row, Statement};
use crate::store::{Store, StoreError, run_ids};
use crate::task::id::{ItemId, RunId, TaskId};

/// A pull/merge request that is looked after.
#[derive(Debug, Clone, PartialEq)]
pub struct Followed {
    pub task: TaskId,
    pub notes: Value,
    /// The notes as they are stored, which tell whether they were replaced since.
    stored: String,
}

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
pub(in crate::store) use origin;

impl Followed {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            task: row.parsed(0)?,
            notes: row.document(1)?,
            stored: row.text(1)?.to_owned(),
        })
    }
}

impl Store {
    /// Follows `task`, which was opened for `origin`, from now on, also if that had ended before.
    /// From here on runs of the two take turns.
    pub async fn follow(&self, task: &TaskId, origin: &TaskId, notes: &Value) -> Result<(), StoreError> {
        let set = Statement::new(
            "INSERT INTO followed (task, origin, notes, active_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (task) DO UPDATE SET origin = excluded.origin, notes = excluded.notes,
                 active_at = excluded.active_at, ended_at = NULL",
        );
        self.execute(set.with(task).with(origin).with(notes.to_string()).with(Utc::now()))
            .await?;
        Ok(())
    }

    /// Returns the requests that are followed and were active since then, by name.
    pub async fn followed_since(&self, since: DateTime<Utc>) -> Result<Vec<Followed>, StoreError> {
        // Sorted here: to have them in order the database would walk through everything that was
        // ever followed, by name.
        let query = Statement::new("SELECT task, notes FROM followed WHERE ended_at IS NULL AND active_at >= $1");
        let rows = self.fetch(query.with(since)).await?;
        let mut followed: Vec<_> = rows.iter().map(Followed::read).collect::<Result<_, _>>()?;
        followed.sort_by_cached_key(|one| one.task.to_string());
        Ok(followed)
    }

    /// Returns `task` if it is or was followed.
    pub async fn followed(&self, task: &TaskId) -> Result<Option<Followed>, StoreError> {
        let query = Statement::new("SELECT task, notes FROM followed WHERE task = $1").with(task);
        self.fetch_first(query).await?.as_ref().map(Followed::read).transpose()
    }

    /// Replaces the notes on a request if they are still those in `read`; returns whether they
    /// were.
    pub async fn note_followed(&self, read: &Followed, notes: &Value) -> Result<bool, StoreError> {
        let update = Statement::new("UPDATE followed SET notes = $2 WHERE task = $1 AND notes = $3");
        let update = update.with(&read.task).with(notes.to_string());
        Ok(self.execute(update.with(read.stored.as_str())).await? > 0)
    }

    /// Stops following `task`, which costs nothing from here on.
    pub async fn unfollow(&self, task: &TaskId) -> Result<(), StoreError> {
        let update = Statement::new("UPDATE followed SET ended_at = $2 WHERE task = $1 AND ended_at IS NULL");
        self.execute(update.with(task).with(Utc::now())).await?;
        Ok(())
    }

    /// Returns the tasks of the same host, kind and number in other repositories that have an
    /// unfinished run, then those that are or were followed, or whose request is or was. One of
    /// them is the same item if its repository was renamed.
    pub async fn namesakes(&self, item: &ItemId) -> Result<Vec<TaskId>, StoreError> {
        // No part of it has a meaning in a pattern.
        let alike = format!("{}:%{}{}", item.host, item.kind.character(), item.number);
        let own = item.to_string();
        let mut found: Vec<TaskId> = Vec::new();
        for query in [
            "SELECT task FROM runs WHERE finished_at IS NULL AND task LIKE $1 AND task <> $2 ORDER BY id",
            "SELECT task FROM followed WHERE task LIKE $1 AND task <> $2 ORDER BY task",
            "SELECT DISTINCT origin FROM followed WHERE origin LIKE $1 AND origin <> $2 ORDER BY origin",
        ] {
            let rows = self
                .fetch(Statement::new(query).with(alike.as_str()).with(own.as_str()))
                .await?;
            for row in &rows {
                let task: TaskId = row.parsed(0)?;
                if !found.contains(&task) {
                    found.push(task);
                }
            }
        }
        Ok(found)
    }

    /// Returns the unfinished runs of other tasks on the branch that runs of `task` work on.
    pub async fn beside(&self, task: &TaskId) -> Result<Vec<RunId>, StoreError> {
        let query = Statement::new(concat!(
            "SELECT runs.id FROM runs WHERE runs.finished_at IS NULL AND runs.task <> $1 AND ",
            origin!("runs.task"),
            " = ",
            origin!("$1"),
            " ORDER BY runs.id"
        ));
        run_ids(&self.fetch(query.with(task)).await?)
    }
}
