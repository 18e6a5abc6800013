//! Evaluations of documents that other programs asked for, whichever process makes them.

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::sql::{Row, Statement};
use super::{Store, StoreError};

/// Key in the store for the time, in microseconds, of the last end up to which evaluations are
/// hidden.
const HIDDEN: &str = "evaluations are hidden up to";

/// Key in the store for the ids of evaluations that are hidden although they have no end.
const HIDDEN_WITHOUT_END: &str = "evaluations without an end are hidden";

/// An evaluation. What is known of it is the caller's own document.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvaluation {
    pub id: Uuid,
    pub begun_at: DateTime<Utc>,
    /// `None` while it is under way, and for ever if its process was killed.
    pub ended_at: Option<DateTime<Utc>>,
    pub document: Value,
}

impl StoredEvaluation {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.parsed(0)?,
            begun_at: row.time(1)?.unwrap_or_default(),
            ended_at: row.time(2)?,
            document: row.document(3)?,
        })
    }
}

impl Store {
    /// Records that an evaluation begins.
    pub async fn begin_evaluation(&self, id: Uuid, document: &Value) -> Result<(), StoreError> {
        let insert = Statement::new(
            "INSERT INTO evaluations (id, begun_at, document) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING",
        );
        let insert = insert.with(id).with(Utc::now()).with(document.to_string());
        self.execute(insert).await?;
        Ok(())
    }

    /// Records the end of an evaluation, with what is known of it now.
    pub async fn end_evaluation(&self, id: Uuid, document: &Value) -> Result<(), StoreError> {
        let update = Statement::new("UPDATE evaluations SET ended_at = $2, document = $3 WHERE id = $1");
        self.execute(update.with(id).with(Utc::now()).with(document.to_string()))
            .await?;
        Ok(())
    }

    /// Returns up to `most` evaluations, newest first.
    pub async fn evaluations(&self, most: u32) -> Result<Vec<StoredEvaluation>, StoreError> {
        let query = Statement::new(
            "SELECT id, begun_at, ended_at, document FROM evaluations ORDER BY begun_at DESC, id DESC LIMIT $1",
        );
        let rows = self.fetch(query.with(most)).await?;
        rows.iter().map(StoredEvaluation::read).collect()
    }

    /// Returns up to `most` evaluations that are not hidden, newest first.
    pub async fn shown_evaluations(&self, most: u32) -> Result<Vec<StoredEvaluation>, StoreError> {
        let hidden = self.remembered(HIDDEN).await?;
        let hidden: i64 = hidden.and_then(|time| time.parse().ok()).unwrap_or_default();
        let broken_off = self.remembered(HIDDEN_WITHOUT_END).await?.unwrap_or_default();
        let query = Statement::new(
            "SELECT id, begun_at, ended_at, document FROM evaluations
             WHERE ended_at > $2 OR (ended_at IS NULL AND REPLACE($3, id, '') = $3)
             ORDER BY begun_at DESC, id DESC LIMIT $1",
        );
        let rows = self.fetch(query.with(most).with(hidden).with(broken_off)).await?;
        rows.iter().map(StoredEvaluation::read).collect()
    }

    /// Returns up to `most` evaluations without an end, newest first.
    pub async fn open_evaluations(&self, most: u32) -> Result<Vec<StoredEvaluation>, StoreError> {
        let query = Statement::new(
            "SELECT id, begun_at, ended_at, document FROM evaluations WHERE ended_at IS NULL
             ORDER BY begun_at DESC, id DESC LIMIT $1",
        );
        let rows = self.fetch(query.with(most)).await?;
        rows.iter().map(StoredEvaluation::read).collect()
    }

    /// Hides the evaluations that there are from those that are shown, but for those that
    /// `is_running` says are under way. One that has an end later is shown then. Nothing is
    /// deleted.
    pub async fn hide_evaluations(
        &self,
        is_running: impl Fn(&StoredEvaluation) -> bool + Send + Sync,
    ) -> Result<(), StoreError> {
        let last = Statement::new("SELECT COALESCE(MAX(ended_at), 0) FROM evaluations");
        let Some(row) = self.fetch_first(last).await? else {
            return Ok(());
        };
        let open = self.open_evaluations(u32::MAX).await?;
        let broken_off = open.iter().filter(|one| !is_running(one));
        let broken_off: Vec<String> = broken_off.map(|one| one.id.to_string()).collect();
        self.remember(HIDDEN, &row.number(0)?.to_string()).await?;
        self.remember(HIDDEN_WITHOUT_END, &broken_off.join(" ")).await
    }

    /// Returns the evaluations whose id ends with `end`, two at most.
    pub async fn evaluations_named(&self, end: &str) -> Result<Vec<StoredEvaluation>, StoreError> {
        let query = Statement::new(
            "SELECT id, begun_at, ended_at, document FROM evaluations
             WHERE SUBSTR(id, LENGTH(id) - LENGTH($1) + 1) = $1 ORDER BY id LIMIT 2",
        );
        let rows = self.fetch(query.with(end)).await?;
        rows.iter().map(StoredEvaluation::read).collect()
    }

    /// Deletes evaluations that began before then.
    pub async fn erase_evaluations(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        let delete = Statement::new("DELETE FROM evaluations WHERE begun_at < $1");
        self.execute(delete.with(before)).await?;
        Ok(())
    }
}
