//! Runs as they are listed for people: newest first, a page at a time, by state and repository.
//! Without their records, so that a page costs the same behind a hundred thousand runs.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};

use crate::store::sql::{Row, Statement};
use crate::store::{Store, StoreError};
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

/// Key in the store for the run up to which the history is hidden.
const HIDDEN: &str = "history is hidden up to";

/// Which runs are wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Runs older than this one.
    pub before: Option<RunId>,
    /// The first word of the state, such as `done`, `paused` or `awaiting_approval`; empty for all.
    pub state: String,
    /// The beginning of the task's id, such as `github:owner/repo`; empty for all.
    pub repository: String,
    /// Also those that were hidden.
    pub with_hidden: bool,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    pub id: RunId,
    pub task: TaskId,
    pub title: String,
    pub state: State,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
    pub finished_at: Option<DateTime<Utc>>,
}

impl Listed {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.parsed(0)?,
            task: row.parsed(1)?,
            title: row.text(2)?.to_owned(),
            state: row.parsed(3)?,
            created_at: row.time(4)?.unwrap_or_default(),
            updated_at: row.time(5)?.unwrap_or_default(),
            finished_at: row.time(6)?,
        })
    }
}

impl Store {
    /// Returns up to `most` runs, newest first. Unfinished ones are never hidden.
    pub async fn history(&self, wanted: &Wanted, most: u32) -> Result<Vec<Listed>, StoreError> {
        let hidden = if wanted.with_hidden {
            None
        } else {
            self.remembered(HIDDEN).await?
        };
        let query = Statement::new(
            "SELECT id, task, title, state, created_at, updated_at, finished_at FROM runs
             WHERE id < $1
               AND ($2 = '' OR state = $2 OR SUBSTR(state, 1, LENGTH($2) + 1) = $2 || ':')
               AND ($3 = '' OR SUBSTR(task, 1, LENGTH($3) + 1) IN ($3 || '#', $3 || '!'))
               AND ($4 = '' OR id > $4 OR id IN (SELECT id FROM runs WHERE finished_at IS NULL))
             ORDER BY id DESC LIMIT $5",
        );
        // Without a bound: a text behind every id, so that the rows are found by their index.
        let before = wanted.before.map_or_else(|| "~".to_owned(), |run| run.to_string());
        let query = query
            .with(before)
            .with(wanted.state.as_str())
            .with(wanted.repository.as_str());
        let rows = self.fetch(query.with(hidden.unwrap_or_default()).with(most)).await?;
        rows.iter().map(Listed::read).collect()
    }

    /// Hides the finished runs that there are from the history. Nothing is deleted.
    pub async fn hide_history(&self) -> Result<(), StoreError> {
        let newest = Statement::new("SELECT COALESCE(MAX(id), '') FROM runs");
        let Some(row) = self.fetch_first(newest).await? else {
            return Ok(());
        };
        self.remember(HIDDEN, row.text(0)?).await
    }

    /// Counts the unfinished runs by their states. Counted here: a database that groups by state
    /// reads the finished runs as well.
    pub async fn unfinished_by_state(&self) -> Result<BTreeMap<String, u64>, StoreError> {
        let query = Statement::new("SELECT id, state FROM runs WHERE finished_at IS NULL ORDER BY id");
        let mut counts = BTreeMap::new();
        for row in self.fetch(query).await? {
            *counts.entry(row.text(1)?.to_owned()).or_default() += 1;
        }
        Ok(counts)
    }
}
