//! Entries for effects that must happen once, whichever process hears of them, and however often.

use chrono::{DateTime, Utc};

use super::sql::Statement;
use super::{Store, StoreError, again};

/// Entries that are deleted at once at most.
const MOST_ERASED: u32 = 10_000;

impl Store {
    /// Writes `name` down, with a value; returns false, and changes nothing, if it was there.
    pub async fn first_time(&self, name: &str, value: &str) -> Result<bool, StoreError> {
        let insert = || {
            let insert =
                Statement::new("INSERT INTO once (name, at, value) VALUES ($1, $2, $3) ON CONFLICT (name) DO NOTHING");
            insert.with(name).with(Utc::now()).with(value)
        };
        again!(self.insert_if_new(insert()))
    }

    /// Runs an insert that does nothing where its row is there; returns whether it was not. In a
    /// transaction, whose end is asked for where its answer was lost: a statement by itself would
    /// be repeated, and take the row that it has written for another one's.
    pub(in crate::store) async fn insert_if_new(&self, insert: Statement) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let rows = transaction.execute(insert).await?;
        transaction.commit().await?;
        Ok(rows == 1)
    }

    /// Returns the value that was written down with `name`.
    pub async fn noted_once(&self, name: &str) -> Result<Option<String>, StoreError> {
        let query = Statement::new("SELECT value FROM once WHERE name = $1").with(name);
        let row = self.fetch_first(query).await?;
        row.map(|row| Ok(row.text(0)?.to_owned())).transpose()
    }

    /// Replaces the value of `name`, or writes it down with it.
    pub async fn note_once(&self, name: &str, value: &str) -> Result<(), StoreError> {
        let set = Statement::new(
            "INSERT INTO once (name, at, value) VALUES ($1, $2, $3)
             ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        );
        self.execute(set.with(name).with(Utc::now()).with(value)).await?;
        Ok(())
    }

    /// Takes `name` out, so that it may take effect again.
    pub async fn not_yet(&self, name: &str) -> Result<(), StoreError> {
        self.execute(Statement::new("DELETE FROM once WHERE name = $1").with(name))
            .await?;
        Ok(())
    }

    /// Deletes the entries whose names begin so and whose values have this word between spaces.
    pub async fn erase_once_with(&self, beginning: &str, word: &str) -> Result<(), StoreError> {
        let delete = Statement::new(
            "DELETE FROM once WHERE SUBSTR(name, 1, LENGTH($1)) = $1 AND REPLACE(value, $2, '') <> value",
        );
        self.execute(delete.with(beginning).with(format!(" {word} "))).await?;
        Ok(())
    }

    /// Deletes what was written down before then.
    pub async fn erase_once(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        let delete = Statement::new("DELETE FROM once WHERE name IN (SELECT name FROM once WHERE at < $1 LIMIT $2)");
        self.execute(delete.with(before).with(MOST_ERASED)).await?;
        Ok(())
    }
}
