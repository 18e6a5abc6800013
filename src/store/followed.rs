//! Which pull/merge requests are looked after. What is to be known of one is the caller's own
//! document.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::row::micros;
use super::{Store, StoreError, origin};
use crate::task::id::{RunId, TaskId};

/// A pull/merge request that is looked after.
#[derive(Debug, Clone, PartialEq)]
pub struct Followed {
    pub task: TaskId,
    pub notes: Value,
}

impl Store {
    /// Looks after `task`, which was opened for `origin`, from now on, anew if that had ended. From
    /// here on runs of the two take turns.
    pub async fn follow(&self, task: &TaskId, origin: &TaskId, notes: &Value) -> Result<(), StoreError> {
        sqlx::query(
            "INSERT INTO followed (task, origin, notes, active_at) VALUES ($1, $2, $3, $4)
             ON CONFLICT (task) DO UPDATE SET origin = excluded.origin, notes = excluded.notes,
                 active_at = excluded.active_at, ended_at = NULL",
        )
        .bind(task.to_string())
        .bind(origin.to_string())
        .bind(notes.to_string())
        .bind(micros(Utc::now()))
        .execute(&self.pool)
        .await
        .map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Returns what is looked after and was active since then, by name.
    pub async fn followed_since(&self, since: DateTime<Utc>) -> Result<Vec<Followed>, StoreError> {
        // Sorted here: to have them in order the database would walk through everything that was
        // ever followed, by name.
        let mut rows: Vec<(String, String)> =
            sqlx::query_as("SELECT task, notes FROM followed WHERE ended_at IS NULL AND active_at >= $1")
                .bind(micros(since))
                .fetch_all(&self.pool)
                .await
                .map_err(|error| self.failed(error))?;
        rows.sort();
        rows.into_iter()
            .map(|(task, notes)| self.read_followed(&task, &notes))
            .collect()
    }

    /// Returns `task` if it is or was looked after.
    pub async fn followed(&self, task: &TaskId) -> Result<Option<Followed>, StoreError> {
        let notes: Option<String> = sqlx::query_scalar("SELECT notes FROM followed WHERE task = $1")
            .bind(task.to_string())
            .fetch_optional(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        notes
            .map(|notes| self.read_followed(&task.to_string(), &notes))
            .transpose()
    }

    /// Replaces the notes.
    pub async fn note_followed(&self, task: &TaskId, notes: &Value) -> Result<(), StoreError> {
        sqlx::query("UPDATE followed SET notes = $2 WHERE task = $1")
            .bind(task.to_string())
            .bind(notes.to_string())
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Looks after `task` no longer: it costs nothing from here on.
    pub async fn unfollow(&self, task: &TaskId) -> Result<(), StoreError> {
        sqlx::query("UPDATE followed SET ended_at = $2 WHERE task = $1 AND ended_at IS NULL")
            .bind(task.to_string())
            .bind(micros(Utc::now()))
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Returns the unfinished runs of other tasks that work on the same branch as runs of `task`
    /// do.
    pub async fn beside(&self, task: &TaskId) -> Result<Vec<RunId>, StoreError> {
        let query = concat!(
            "SELECT runs.id FROM runs WHERE runs.finished_at IS NULL AND runs.task <> $1 AND ",
            origin!("runs.task"),
            " = ",
            origin!("$1"),
            " ORDER BY runs.id"
        );
        let rows: Vec<String> = sqlx::query_scalar(query)
            .bind(task.to_string())
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        rows.iter().map(|id| self.run_id(id)).collect()
    }

    fn read_followed(&self, task: &str, notes: &str) -> Result<Followed, StoreError> {
        Ok(Followed {
            task: task.parse().map_err(|error| self.unreadable(task, &error))?,
            notes: serde_json::from_str(notes).map_err(|error| self.unreadable(task, &error))?,
        })
    }
}
