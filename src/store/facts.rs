//! Facts, numbered in the order in which they were written.
//!
//! A reader that has come to a number has missed nothing below it, whichever process wrote it. The
//! content of a fact is the caller's own document.

use chrono::{DateTime, Utc};

use super::engine::Purpose;
use super::sql::{Row, Statement};
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

impl NumberedFact {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            sequence: row.number(0)?.unsigned_abs(),
            document: row.text(1)?.to_owned(),
        })
    }
}

/// A choice of facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FactFilter {
    All,
    OfRun(RunId),
    OfTask(TaskId),
}

/// Facts of runs that are not in the store any more are deleted at most so many at once.
const MOST_ERASED: u32 = 10_000;

/// Facts that one statement adds. A statement for each of them would keep runs, which save their
/// work over the same connection, waiting for as many turns of the database's thread.
const PAGE: usize = 8;
const ADD_ONE: &str = "INSERT INTO facts (at, run, task, fact) VALUES ($1, $2, $3, $4) RETURNING sequence";
const ADD_PAGE: &str = "INSERT INTO facts (at, run, task, fact) VALUES
    ($1, $2, $3, $4), ($5, $6, $7, $8), ($9, $10, $11, $12), ($13, $14, $15, $16),
    ($17, $18, $19, $20), ($21, $22, $23, $24), ($25, $26, $27, $28), ($29, $30, $31, $32) RETURNING sequence";

fn insert(text: &'static str, facts: &[NewFact]) -> Statement {
    facts.iter().fold(Statement::new(text), |insert, fact| {
        insert
            .with(fact.at)
            .with(fact.run)
            .with(fact.task.as_ref())
            .with(fact.document.as_str())
    })
}

impl Store {
    /// Numbers facts and keeps them, all or none; returns the number of the last one.
    pub async fn add_facts(&self, facts: &[NewFact]) -> Result<u64, StoreError> {
        again!(self.add_once(facts, None))
    }

    /// Numbers facts and keeps them, after an attempt that failed; returns the number of the last
    /// one. The database may have kept what the attempt wrote without an answer: facts with numbers
    /// above `after` that are there already are not written a second time.
    pub async fn add_facts_again(&self, facts: &[NewFact], after: u64) -> Result<u64, StoreError> {
        again!(self.add_once(facts, Some(after)))
    }

    async fn add_once(&self, facts: &[NewFact], after: Option<u64>) -> Result<u64, StoreError> {
        // The attempt before is no longer under way: it held the lock on the numbering until its
        // transaction ended, and this one has the lock now.
        let mut transaction = self.engine.begin(Purpose::Number).await?;
        if let (Some(after), Some(fact)) = (after, facts.last()) {
            let query = Statement::new(
                "SELECT COALESCE(MAX(sequence), 0) FROM facts WHERE at = $1 AND fact = $2 AND sequence > $3",
            );
            let query = query.with(fact.at).with(fact.document.as_str()).with(after);
            let rows = transaction.fetch(query).await?;
            let kept = rows.first().map(|row| row.number(0)).transpose()?.unwrap_or_default();
            if kept > 0 {
                return Ok(kept.unsigned_abs());
            }
        }
        let mut last = 0;
        let (pages, rest) = facts.as_chunks::<PAGE>();
        let inserts = pages
            .iter()
            .map(|page| insert(ADD_PAGE, page))
            .chain(rest.iter().map(|fact| insert(ADD_ONE, std::slice::from_ref(fact))));
        for insert in inserts {
            for row in transaction.fetch(insert).await? {
                last = last.max(row.number(0)?.unsigned_abs());
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
        rows.iter().map(NumberedFact::read).collect()
    }

    /// Returns the newest facts, `most` at most, in order.
    pub async fn newest_facts(&self, filter: &FactFilter, most: u32) -> Result<Vec<NumberedFact>, StoreError> {
        let query = |text| Statement::new(text).with(most);
        let query = match filter {
            FactFilter::All => query("SELECT sequence, fact FROM facts ORDER BY sequence DESC LIMIT $1"),
            FactFilter::OfRun(run) => {
                query("SELECT sequence, fact FROM facts WHERE run = $2 ORDER BY sequence DESC LIMIT $1").with(*run)
            }
            FactFilter::OfTask(task) => {
                query("SELECT sequence, fact FROM facts WHERE task = $2 ORDER BY sequence DESC LIMIT $1").with(task)
            }
        };
        let rows = self.fetch(query).await?;
        rows.iter().rev().map(NumberedFact::read).collect()
    }

    /// Returns the newest fact of a run with this name, such as `difference_made`.
    pub async fn newest_of(&self, run: RunId, name: &str) -> Result<Option<NumberedFact>, StoreError> {
        let query = Statement::new(
            "SELECT sequence, fact FROM facts WHERE run = $1 AND fact LIKE $2 ORDER BY sequence DESC LIMIT 1",
        );
        // A text in a fact has its quotation marks escaped, so none looks like this.
        let query = query.with(run).with(format!("%\"fact\":\"{name}\"%"));
        self.fetch_first(query)
            .await?
            .as_ref()
            .map(NumberedFact::read)
            .transpose()
    }

    /// Returns the number of the newest fact; 0 if there is none.
    pub async fn newest_fact(&self) -> Result<u64, StoreError> {
        let query = Statement::new("SELECT COALESCE(MAX(sequence), 0) FROM facts");
        self.fetch_count(query).await
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
