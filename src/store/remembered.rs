//! What one process leaves to the next: tokens used by day, and words under a key.

use chrono::NaiveDate;

use super::sql::Statement;
use super::{Store, StoreError};
use crate::conversation::Usage;

impl Store {
    /// Books tokens on a day.
    pub async fn use_on(&self, day: NaiveDate, usage: &Usage) -> Result<(), StoreError> {
        let add = Statement::new(
            "INSERT INTO used (day, input, output, cached) VALUES ($1, $2, $3, $4)
             ON CONFLICT (day) DO UPDATE SET input = used.input + excluded.input, output = used.output + excluded.output,
                 cached = used.cached + excluded.cached",
        );
        self.execute(
            add.with(day.to_string())
                .with(usage.input)
                .with(usage.output)
                .with(usage.cached),
        )
        .await?;
        Ok(())
    }

    /// Returns what was booked on a day.
    pub async fn used_on(&self, day: NaiveDate) -> Result<Usage, StoreError> {
        let query = Statement::new("SELECT input, output, cached FROM used WHERE day = $1").with(day.to_string());
        let Some(row) = self.fetch_first(query).await? else {
            return Ok(Usage::default());
        };
        Ok(Usage {
            input: row.number(0)?.unsigned_abs(),
            output: row.number(1)?.unsigned_abs(),
            cached: row.number(2)?.unsigned_abs(),
        })
    }

    /// Returns what an earlier process stored under `key`.
    pub async fn remembered(&self, key: &str) -> Result<Option<String>, StoreError> {
        let query = Statement::new("SELECT value FROM remembered WHERE name = $1").with(key);
        let row = self.fetch_first(query).await?;
        row.map(|row| Ok(row.text(0)?.to_owned())).transpose()
    }

    /// Stores `value` under `key`, for the next process.
    pub async fn remember(&self, key: &str, value: &str) -> Result<(), StoreError> {
        let set = Statement::new(
            "INSERT INTO remembered (name, value) VALUES ($1, $2)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        );
        self.execute(set.with(key).with(value)).await?;
        Ok(())
    }
}
