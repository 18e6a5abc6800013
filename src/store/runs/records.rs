//! Bringing the records of runs up to date, once for each version of them.
//!
//! The tables are changed by the steps of an engine's `migrations`. What stands in a record is
//! known to its owner alone, who says what becomes of one.

use serde_json::Value;

use crate::store::sql::Statement;
use crate::store::{Store, StoreError};
use crate::task::id::RunId;

/// Under which name the store keeps the version that all records have.
const VERSION: &str = "version of the records";
/// Records that are rewritten in one transaction: nobody else can write meanwhile.
const PAGE: u32 = 100;

impl Store {
    /// Rewrites the records of all runs with `upgrade`, unless that was done for this version
    /// before; returns how many were changed. `upgrade` returns whether it changed anything. It has
    /// to leave alone what it changed before, since the next call completes what a crash
    /// interrupts.
    pub async fn upgrade_records(
        &self,
        version: u64,
        upgrade: impl Fn(&mut Value) -> bool + Send + Sync,
    ) -> Result<u64, StoreError> {
        let version = version.to_string();
        if self.remembered(VERSION).await?.as_deref() == Some(&version) {
            return Ok(0);
        }
        let (mut changed, mut last) = (0, String::new());
        loop {
            let mut transaction = self.begin().await?;
            let page = Statement::new("SELECT id, record FROM runs WHERE id > $1 ORDER BY id LIMIT $2");
            let rows = transaction.fetch(page.with(last.as_str()).with(PAGE)).await?;
            let Some(newest) = rows.last() else { break };
            newest.text(0)?.clone_into(&mut last);
            for row in &rows {
                let (run, mut record): (RunId, Value) = (row.parsed(0)?, row.document(1)?);
                if upgrade(&mut record) {
                    // A record that was saved meanwhile has the new form already.
                    let update = Statement::new("UPDATE runs SET record = $2 WHERE id = $1 AND record = $3");
                    let update = update.with(run).with(record.to_string()).with(row.text(1)?);
                    changed += transaction.execute(update).await?;
                }
            }
            transaction.commit().await?;
        }
        self.remember(VERSION, &version).await?;
        Ok(changed)
    }
}
