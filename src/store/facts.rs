//! Facts, numbered in the order in which they were written.
//!
//! Whoever has read up to a number has missed nothing below it, whichever process wrote it. What a
//! fact says is the caller's own document.

use chrono::{DateTime, Utc};

use super::engine::Purpose;
use super::sql::Statement;
use super::{Store, StoreError, again};
use crate::task::id::{RunId, TaskId};

/// A fact that is to be numbered.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFact {
    pub at: DateTime<Utc>,
    pub run: Option<RunId>,
    pub task: Option<TaskId>,
    pub document: String,
}

/// A fact with its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberedFact {
    pub sequence: u64,
    pub document: String,
}

/// Which facts are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactFilter {
    All,
    OfRun(RunId),
    OfTask(TaskId),
}

/// Facts of runs that are not in the store any more are deleted at most so many at once.
const MOST_ERASED: u32 = 10_000;

impl Store {
    /// Numbers facts and keeps them, all or none; returns the number of the last one.
    pub async fn add_facts(&self, facts: &[NewFact]) -> Result<u64, StoreError> {
        again!(self.add_once(facts))
    }

    async fn add_once(&self, facts: &[NewFact]) -> Result<u64, StoreError> {
        let mut transaction = self.engine.begin(Purpose::Number).await?;
        let mut last = 0;
        for fact in facts {
            let insert =
                Statement::new("INSERT INTO facts (at, run, task, fact) VALUES ($1, $2, $3, $4) RETURNING sequence");
            let insert = insert
                .with(fact.at)
                .with(fact.run)
                .with(fact.task.as_ref())
                .with(fact.document.as_str());
            for row in transaction.fetch(insert).await? {
                last = row.number(0)?.unsigned_abs();
            }
        }
        transaction.commit().await?;
        Ok(last)
    }

    /// Returns up to `most` facts after the number `after`, in order.
    pub async fn facts(&self, after: u64, filter: &FactFilter, most: u32) -> Result<Vec<NumberedFact>, StoreError> {
        let query = |text| Statement::new(text).with(after).with(most);
        let query = match filter {
            FactFilter::All => query("SELECT sequence, fact FROM facts WHERE sequence > $1 ORDER BY sequence LIMIT $2"),
            FactFilter::OfRun(run) => {
                query("SELECT sequence, fact FROM facts WHERE run = $3 AND sequence > $1 ORDER BY sequence LIMIT $2")
                    .with(*run)
            }
            FactFilter::OfTask(task) => {
                query("SELECT sequence, fact FROM facts WHERE task = $3 AND sequence > $1 ORDER BY sequence LIMIT $2")
                    .with(task)
            }
        };
        let rows = self.fetch(query).await?;
        rows.iter()
            .map(|row| {
                Ok(NumberedFact {
                    sequence: row.number(0)?.unsigned_abs(),
                    document: row.text(1)?.to_owned(),
                })
            })
            .collect()
    }

    /// Returns the number of the newest fact; 0 if there is none.
    pub async fn newest_fact(&self) -> Result<u64, StoreError> {
        let query = Statement::new("SELECT COALESCE(MAX(sequence), 0) FROM facts");
        let row = self.fetch_first(query).await?;
        Ok(row
            .map(|row| row.number(0))
            .transpose()?
            .unwrap_or_default()
            .unsigned_abs())
    }

    /// Deletes the facts with these numbers.
    pub async fn erase_facts(&self, sequences: &[u64]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        for sequence in sequences {
            let delete = Statement::new("DELETE FROM facts WHERE sequence = $1");
            transaction.execute(delete.with(*sequence)).await?;
        }
        transaction.commit().await
    }

    /// Deletes facts from before then that belong to no run in the store. Those of a run are
    /// deleted with it.
    pub async fn erase_old_facts(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        let delete = Statement::new(
            "DELETE FROM facts WHERE sequence IN (SELECT sequence FROM facts WHERE at < $1
             AND (run IS NULL OR NOT EXISTS (SELECT 1 FROM runs WHERE runs.id = facts.run)) LIMIT $2)",
        );
        self.execute(delete.with(before).with(MOST_ERASED)).await?;
        Ok(())
    }
}
