//! Deletes old conversations and runs, and everything of a task that is to be forgotten.
//!
//! Unfinished runs are never touched, nor by age those whose pull/merge request is still looked
//! after. What is deleted is overwritten in the file (`secure_delete`), whose pages are used again;
//! [`Store::settle`] empties the write-ahead log, in which older states of the pages stand until
//! then.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Deserialize;

use super::runs::unfinished_work::delete_work;
use super::sql::Statement;
use super::{Store, StoreError, run_ids};
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

/// Tells, as SQL, whether a run or a request that was opened for it is followed.
macro_rules! is_followed {
    () => {
        "(EXISTS (SELECT 1 FROM followed WHERE followed.task = runs.task AND followed.ended_at IS NULL)
          OR EXISTS (SELECT 1 FROM followed WHERE followed.origin = runs.task AND followed.ended_at IS NULL))"
    };
}

impl Store {
    /// Returns up to `most` finished runs that ended before then, oldest first.
    pub async fn expired_runs(&self, before: DateTime<Utc>, most: u32) -> Result<Vec<RunId>, StoreError> {
        let query = Statement::new(concat!(
            "SELECT id FROM runs WHERE finished_at < $1 AND NOT ",
            is_followed!(),
            " ORDER BY finished_at LIMIT $2"
        ));
        run_ids(&self.fetch(query.with(before).with(most)).await?)
    }

    /// Tells whether a run is stored.
    pub async fn has_run(&self, run: RunId) -> Result<bool, StoreError> {
        let query = Statement::new("SELECT id FROM runs WHERE id = $1").with(run);
        Ok(self.fetch_first(query).await?.is_some())
    }

    /// Returns up to `most` finished runs that ended before then and still have a conversation.
    pub async fn expired_conversations(&self, before: DateTime<Utc>, most: u32) -> Result<Vec<RunId>, StoreError> {
        let query = Statement::new(concat!(
            "SELECT id FROM runs WHERE finished_at < $1 AND EXISTS (SELECT 1 FROM messages WHERE messages.run = runs.id)
             AND NOT ",
            is_followed!(),
            " ORDER BY finished_at LIMIT $2"
        ));
        run_ids(&self.fetch(query.with(before).with(most)).await?)
    }

    /// Returns up to `most` pull/merge requests that are followed and had no work since before
    /// then.
    pub async fn quiet_since(&self, before: DateTime<Utc>, most: u32) -> Result<Vec<TaskId>, StoreError> {
        let query = Statement::new(
            "SELECT task FROM followed WHERE ended_at IS NULL AND active_at < $1 ORDER BY active_at LIMIT $2",
        );
        let rows = self.fetch(query.with(before).with(most)).await?;
        rows.iter().map(|row| row.parsed(0)).collect()
    }

    /// Returns the pull/merge requests that were opened for a task.
    pub async fn opened_for(&self, task: &TaskId) -> Result<Vec<TaskId>, StoreError> {
        let query = Statement::new("SELECT task FROM followed WHERE origin = $1 AND task <> $1 ORDER BY task");
        let rows = self.fetch(query.with(task)).await?;
        rows.iter().map(|row| row.parsed(0)).collect()
    }

    /// Returns the finished runs of a task whose worker is alive and has kept the lease up to now:
    /// it still clears up after them, or did so within the last moments.
    pub async fn held_beyond_end(&self, task: &TaskId) -> Result<Vec<RunId>, StoreError> {
        let query = Statement::new(
            "SELECT id, lease_worker, lease_host, lease_expires_at, lease_token FROM runs
             WHERE task = $1 AND finished_at IS NOT NULL AND lease_token IS NOT NULL AND lease_expires_at > $2
             ORDER BY id",
        );
        let now = self.engine.now().await?;
        let holders = self.living(query.with(task).with(now)).await?;
        Ok(holders.into_iter().map(|(run, _)| run).collect())
    }

    /// Deletes the conversations of these runs.
    pub async fn drop_conversations(&self, runs: &[RunId]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        for run in runs {
            let delete = Statement::new("DELETE FROM messages WHERE run = $1");
            transaction.execute(delete.with(*run)).await?;
        }
        transaction.commit().await
    }

    /// Deletes those of these runs that are finished, with everything stored for them. Returns how
    /// many there were.
    pub async fn erase_runs(&self, runs: &[RunId]) -> Result<u64, StoreError> {
        let mut transaction = self.begin().await?;
        let mut erased = 0;
        for run in runs {
            for belongings in [
                "DELETE FROM messages WHERE run IN (SELECT id FROM runs WHERE id = $1 AND finished_at IS NOT NULL)",
                "DELETE FROM requests WHERE run IN (SELECT id FROM runs WHERE id = $1 AND finished_at IS NOT NULL)",
                "DELETE FROM facts WHERE run IN (SELECT id FROM runs WHERE id = $1 AND finished_at IS NOT NULL)",
            ] {
                transaction.execute(Statement::new(belongings).with(*run)).await?;
            }
            delete_work(&mut *transaction, *run).await?;
            let delete = Statement::new("DELETE FROM runs WHERE id = $1 AND finished_at IS NOT NULL");
            erased += transaction.execute(delete.with(*run)).await?;
        }
        transaction.commit().await?;
        Ok(erased)
    }

    /// Deletes what is stored about requests that have not been followed since then.
    pub async fn erase_unfollowed(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        self.execute(Statement::new("DELETE FROM followed WHERE ended_at < $1").with(before))
            .await?;
        Ok(())
    }

    /// Deletes what is stored about a request, whether it is followed or not.
    pub async fn erase_followed(&self, task: &TaskId) -> Result<(), StoreError> {
        self.execute(Statement::new("DELETE FROM followed WHERE task = $1").with(task))
            .await?;
        Ok(())
    }

    /// Deletes what was stored for later processes under keys with this beginning; they do without
    /// it.
    pub async fn erase_remembered(&self, beginning: &str) -> Result<(), StoreError> {
        let delete = Statement::new("DELETE FROM remembered WHERE SUBSTR(name, 1, LENGTH($1)) = $1");
        self.execute(delete.with(beginning)).await?;
        Ok(())
    }

    /// Removes what was deleted from all files of the store. If another process reads at this
    /// moment, something may stay until the last process closes the store; returns whether nothing
    /// is left.
    pub async fn settle(&self) -> Result<bool, StoreError> {
        self.engine.settle().await
    }
}
