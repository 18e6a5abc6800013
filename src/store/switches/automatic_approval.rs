//! Whether results may pass without a person at the moment. It is switched on for a time, by the
//! clock that all who share the store have in common, and off at once.

use chrono::{DateTime, TimeDelta, Utc};

use crate::approval::automatic::Started;
use crate::store::sql::Statement;
use crate::store::{Store, StoreError};

impl Store {
    /// Switches automatic approval on for a time, in the place of what was left of an earlier one.
    pub async fn start_automatic_approval(&self, by: &str, time: TimeDelta) -> Result<DateTime<Utc>, StoreError> {
        let until = self.engine.now().await? + time;
        let set = Statement::new(
            "INSERT INTO automatic_approval (id, started_by, until) VALUES (1, $1, $2)
             ON CONFLICT (id) DO UPDATE SET started_by = excluded.started_by, until = excluded.until",
        );
        self.execute(set.with(by).with(until)).await?;
        Ok(until)
    }

    /// Switches automatic approval off; returns whether it was on.
    pub async fn end_automatic_approval(&self) -> Result<bool, StoreError> {
        let now = self.engine.now().await?;
        let was_on = self
            .automatic_approval()
            .await?
            .is_some_and(|started| started.is_on(now));
        self.execute(Statement::new("DELETE FROM automatic_approval WHERE id = 1"))
            .await?;
        Ok(was_on)
    }

    /// Returns who has switched automatic approval on and until when, while it is on.
    pub async fn automatic_approval(&self) -> Result<Option<Started>, StoreError> {
        let now = self.engine.now().await?;
        let query = Statement::new("SELECT started_by, until FROM automatic_approval WHERE id = 1");
        let Some(row) = self.fetch_first(query).await? else {
            return Ok(None);
        };
        let started = Started {
            by: row.text(0)?.to_owned(),
            until: row.time(1)?.unwrap_or(DateTime::UNIX_EPOCH),
        };
        Ok(Some(started).filter(|started| started.is_on(now)))
    }
}
