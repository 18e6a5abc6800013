//! The unfinished work of runs, as bytes that only their owner understands.
//!
//! It is written in parts, so that neither memory nor a transaction holds the whole. An upload
//! counts once it is complete: until then the one before it is read, and what a crash left of one
//! goes with the next. All of it goes with the end of its run.

use serde_json::Value;
use uuid::Uuid;

use crate::store::engine::Transaction;
use crate::store::sql::Statement;
use crate::store::{Lease, Store, StoreError, again, still_held};
use crate::task::id::RunId;

/// A complete upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredWork {
    run: RunId,
    upload: Uuid,
    /// The document of its owner.
    pub about: Value,
}

impl Store {
    /// Writes a part of an upload.
    pub async fn add_work_part(
        &self,
        lease: &Lease,
        upload: Uuid,
        position: u64,
        content: Vec<u8>,
    ) -> Result<(), StoreError> {
        let insert = Statement::new(
            "INSERT INTO unfinished_parts (run, upload, position, content) SELECT id, $3, $4, $5 FROM runs
             WHERE id = $1 AND lease_token = $2 AND finished_at IS NULL
             ON CONFLICT (run, upload, position) DO UPDATE SET content = excluded.content",
        );
        let insert = insert
            .held_by(lease, self.worker())
            .with(upload)
            .with(position)
            .with(content);
        still_held(lease, self.execute(insert).await?)
    }

    /// Makes this upload the run's work, and deletes the parts of all others.
    pub async fn complete_work(&self, lease: &Lease, upload: Uuid, about: &Value) -> Result<(), StoreError> {
        again!(self.complete_once(lease, upload, about))
    }

    async fn complete_once(&self, lease: &Lease, upload: Uuid, about: &Value) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let insert = Statement::new(
            "INSERT INTO unfinished_work (run, upload, about) SELECT id, $3, $4 FROM runs
             WHERE id = $1 AND lease_token = $2 AND finished_at IS NULL
             ON CONFLICT (run) DO UPDATE SET upload = excluded.upload, about = excluded.about",
        );
        let insert = insert
            .held_by(lease, self.worker())
            .with(upload)
            .with(about.to_string());
        still_held(lease, transaction.execute(insert).await?)?;
        let delete = Statement::new("DELETE FROM unfinished_parts WHERE run = $1 AND upload <> $2");
        transaction.execute(delete.with(lease.run).with(upload)).await?;
        transaction.commit().await
    }

    /// Returns the last complete upload of a run, if there is one.
    pub async fn work_of(&self, run: RunId) -> Result<Option<StoredWork>, StoreError> {
        let query = Statement::new("SELECT run, upload, about FROM unfinished_work WHERE run = $1").with(run);
        let Some(row) = self.fetch_first(query).await? else {
            return Ok(None);
        };
        Ok(Some(StoredWork {
            run: row.parsed(0)?,
            upload: row.parsed(1)?,
            about: row.document(2)?,
        }))
    }

    /// Returns a part of an upload; `None` behind its last one.
    pub async fn work_part(&self, work: &StoredWork, position: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let query = Statement::new(
            "SELECT position, content FROM unfinished_parts WHERE run = $1 AND upload = $2 AND position = $3",
        );
        let row = self
            .fetch_first(query.with(work.run).with(work.upload).with(position))
            .await?;
        row.map(|row| row.bytes(1)).transpose()
    }
}

/// Deletes the work of a run that has ended.
pub(in crate::store) async fn delete_work(transaction: &mut dyn Transaction, run: RunId) -> Result<(), StoreError> {
    for delete in [
        "DELETE FROM unfinished_work WHERE run IN (SELECT id FROM runs WHERE id = $1 AND finished_at IS NOT NULL)",
        "DELETE FROM unfinished_parts WHERE run IN (SELECT id FROM runs WHERE id = $1 AND finished_at IS NOT NULL)",
    ] {
        transaction.execute(Statement::new(delete).with(run)).await?;
    }
    Ok(())
}
