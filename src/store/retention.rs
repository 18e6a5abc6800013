//! What the store keeps no longer: conversations and runs of long ago, and everything of a task
//! that is to be forgotten.
//!
//! Unfinished runs are never touched, nor by age those whose pull/merge request is still looked
//! after. What is deleted is overwritten in the file (`secure_delete`), whose pages are used again;
//! [`Store::settle`] empties the write-ahead log, in which older states of the pages stand until
//! then.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;

use super::row::micros;
use super::{Store, StoreError};
use crate::task::id::{RunId, TaskId};

/// How long what is stored of finished work is kept.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Retention {
    /// Days after their end until finished runs are deleted.
    pub runs_days: u32,
    /// Days after their end until the conversations of finished runs are deleted.
    pub conversations_days: u32,
    /// Days without a run on it until a repository's mirror is deleted; it is made again when it is
    /// needed.
    pub mirrors_unused_days: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            runs_days: 90,
            conversations_days: 30,
            mirrors_unused_days: 60,
        }
    }
}

/// Whether a run or a request that was opened for it is looked after, as SQL.
macro_rules! is_followed {
    () => {
        "(EXISTS (SELECT 1 FROM followed WHERE followed.task = runs.task AND followed.ended_at IS NULL)
          OR EXISTS (SELECT 1 FROM followed WHERE followed.origin = runs.task AND followed.ended_at IS NULL))"
    };
}

impl Store {
    /// Returns finished runs that ended before then, oldest first, at most so many.
    pub async fn expired_runs(&self, before: DateTime<Utc>, most: u32) -> Result<Vec<RunId>, StoreError> {
        let query = concat!(
            "SELECT id FROM runs WHERE finished_at < $1 AND NOT ",
            is_followed!(),
            " ORDER BY finished_at LIMIT $2"
        );
        self.run_ids(query, before, most).await
    }

    /// Returns finished runs that ended before then and whose conversation is still there, at most
    /// so many.
    pub async fn expired_conversations(&self, before: DateTime<Utc>, most: u32) -> Result<Vec<RunId>, StoreError> {
        let query = concat!(
            "SELECT id FROM runs WHERE finished_at < $1 AND EXISTS (SELECT 1 FROM messages WHERE messages.run = runs.id)
             AND NOT ",
            is_followed!(),
            " ORDER BY finished_at LIMIT $2"
        );
        self.run_ids(query, before, most).await
    }

    /// Returns the pull/merge requests that were looked after and without any work since before
    /// then, at most so many.
    pub async fn quiet_since(&self, before: DateTime<Utc>, most: u32) -> Result<Vec<TaskId>, StoreError> {
        let tasks: Vec<String> = sqlx::query_scalar(
            "SELECT task FROM followed WHERE ended_at IS NULL AND active_at < $1 ORDER BY active_at LIMIT $2",
        )
        .bind(micros(before))
        .bind(i64::from(most))
        .fetch_all(&self.pool)
        .await
        .map_err(|error| self.failed(error))?;
        self.tasks(&tasks)
    }

    /// Returns the pull/merge requests that were opened for a task.
    pub async fn opened_for(&self, task: &TaskId) -> Result<Vec<TaskId>, StoreError> {
        let tasks: Vec<String> =
            sqlx::query_scalar("SELECT task FROM followed WHERE origin = $1 AND task <> $1 ORDER BY task")
                .bind(task.to_string())
                .fetch_all(&self.pool)
                .await
                .map_err(|error| self.failed(error))?;
        self.tasks(&tasks)
    }

    /// Deletes the conversations of these runs.
    pub async fn drop_conversations(&self, runs: &[RunId]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        for run in runs {
            sqlx::query("DELETE FROM messages WHERE run = $1")
                .bind(run.to_string())
                .execute(&mut *transaction)
                .await
                .map_err(|error| self.failed(error))?;
        }
        transaction.commit().await.map_err(|error| self.failed(error))
    }

    /// Deletes those of these runs that are finished, with their conversations and requests.
    /// Returns how many they were.
    pub async fn erase_runs(&self, runs: &[RunId]) -> Result<u64, StoreError> {
        let mut transaction = self.begin().await?;
        let mut erased = 0;
        for run in runs {
            for query in [
                "DELETE FROM messages WHERE run IN (SELECT id FROM runs WHERE id = $1 AND finished_at IS NOT NULL)",
                "DELETE FROM requests WHERE run IN (SELECT id FROM runs WHERE id = $1 AND finished_at IS NOT NULL)",
                "DELETE FROM runs WHERE id = $1 AND finished_at IS NOT NULL",
            ] {
                let deleted = sqlx::query(query)
                    .bind(run.to_string())
                    .execute(&mut *transaction)
                    .await
                    .map_err(|error| self.failed(error))?;
                if query.starts_with("DELETE FROM runs") {
                    erased += deleted.rows_affected();
                }
            }
        }
        transaction.commit().await.map_err(|error| self.failed(error))?;
        Ok(erased)
    }

    /// Deletes what is known of requests that are not looked after any more since then.
    pub async fn erase_unfollowed(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM followed WHERE ended_at < $1")
            .bind(micros(before))
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Deletes what is known of a request, looked after or not.
    pub async fn erase_followed(&self, task: &TaskId) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM followed WHERE task = $1")
            .bind(task.to_string())
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Deletes what was stored for later processes under names that begin so; they do without it.
    pub async fn erase_remembered(&self, beginning: &str) -> Result<(), StoreError> {
        sqlx::query("DELETE FROM remembered WHERE SUBSTR(name, 1, LENGTH($1)) = $1")
            .bind(beginning)
            .execute(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(())
    }

    /// Writes everything into the file itself and empties the log beside it. Where another process
    /// reads at this moment the log stays, and is emptied by whoever closes the store last; returns
    /// whether it is empty.
    pub async fn settle(&self) -> Result<bool, StoreError> {
        let (busy, _, _): (i64, i64, i64) = sqlx::query_as("PRAGMA wal_checkpoint(TRUNCATE)")
            .fetch_one(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        Ok(busy == 0)
    }

    async fn run_ids(&self, query: &'static str, before: DateTime<Utc>, most: u32) -> Result<Vec<RunId>, StoreError> {
        let ids: Vec<String> = sqlx::query_scalar(query)
            .bind(micros(before))
            .bind(i64::from(most))
            .fetch_all(&self.pool)
            .await
            .map_err(|error| self.failed(error))?;
        ids.iter().map(|id| self.run_id(id)).collect()
    }

    fn tasks(&self, names: &[String]) -> Result<Vec<TaskId>, StoreError> {
        let read = |name: &String| name.parse::<TaskId>().map_err(|error| self.unreadable(name, &error));
        names.iter().map(read).collect()
    }
}
