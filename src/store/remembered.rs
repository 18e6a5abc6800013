//! Data that one process leaves to the next: the tokens used on each day, and texts under a key.

use chrono::NaiveDate;
use uuid::Uuid;

use super::sql::Statement;
use super::{Store, StoreError, again};
use crate::conversation::Usage;

/// The key of the installation's name.
const INSTALLATION: &str = "the installation";

impl Store {
    /// Adds the usage of a model to the total of a day.
    pub async fn use_on(&self, day: NaiveDate, model: &str, usage: &Usage) -> Result<(), StoreError> {
        again!(self.use_once(day, model, usage))
    }

    /// In a transaction, of which is known whether it was written: repeated, it would count twice.
    async fn use_once(&self, day: NaiveDate, model: &str, usage: &Usage) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        let add = Statement::new(
            "INSERT INTO used_by_model (day, model, input, output, cached, cache_written)
             VALUES ($1, $2, $3, $4, $5, $6)
             ON CONFLICT (day, model) DO UPDATE SET input = used_by_model.input + excluded.input,
                 output = used_by_model.output + excluded.output, cached = used_by_model.cached + excluded.cached,
                 cache_written = used_by_model.cache_written + excluded.cache_written",
        );
        let day = day.to_string();
        let add = add.with(day.as_str()).with(model).with(usage.input);
        let add = add.with(usage.output).with(usage.cached).with(usage.cache_written);
        transaction.execute(add).await?;
        transaction.commit().await
    }

    /// Returns the usage of a day, by model.
    pub async fn used_on(&self, day: NaiveDate) -> Result<Vec<(String, Usage)>, StoreError> {
        let query = Statement::new(
            "SELECT model, input, output, cached, cache_written FROM used_by_model WHERE day = $1 ORDER BY model",
        );
        let rows = self.fetch(query.with(day.to_string())).await?;
        let used = rows.into_iter().map(|row| {
            let usage = Usage {
                input: row.number(1)?.unsigned_abs(),
                output: row.number(2)?.unsigned_abs(),
                cached: row.number(3)?.unsigned_abs(),
                cache_written: row.number(4)?.unsigned_abs(),
            };
            Ok((row.text(0)?.to_owned(), usage))
        });
        used.collect()
    }

    /// Returns the name of the installation, by which all its workers are one in the eyes of
    /// others. The first of them makes it.
    pub async fn installation(&self) -> Result<Uuid, StoreError> {
        for _ in 0..2 {
            if let Some(name) = self.remembered(INSTALLATION).await? {
                return name.parse().map_err(|error: uuid::Error| StoreError::Database {
                    store: format!("its name for {INSTALLATION}, '{name}',"),
                    source: error.into(),
                });
            }
            let insert =
                Statement::new("INSERT INTO remembered (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING");
            self.execute(insert.with(INSTALLATION).with(Uuid::new_v4().to_string()))
                .await?;
        }
        Err(StoreError::Database {
            store: INSTALLATION.to_owned(),
            source: "it was written and is not there".into(),
        })
    }

    /// Returns what an earlier process stored under `key`.
    pub async fn remembered(&self, key: &str) -> Result<Option<String>, StoreError> {
        let query = Statement::new("SELECT value FROM remembered WHERE name = $1").with(key);
        let row = self.fetch_first(query).await?;
        row.map(|row| Ok(row.text(0)?.to_owned())).transpose()
    }

    /// Returns what is stored under keys that begin so, with the keys, in their order.
    pub async fn remembered_as(&self, beginning: &str) -> Result<Vec<(String, String)>, StoreError> {
        let query =
            Statement::new("SELECT name, value FROM remembered WHERE SUBSTR(name, 1, LENGTH($1)) = $1 ORDER BY name");
        let rows = self.fetch(query.with(beginning)).await?;
        let all = rows
            .iter()
            .map(|row| Ok((row.text(0)?.to_owned(), row.text(1)?.to_owned())));
        all.collect()
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

    /// Stores `value` under `key` if `before` is still what is stored there; returns whether it
    /// was.
    pub async fn remember_unless_changed(
        &self,
        key: &str,
        before: Option<&str>,
        value: &str,
    ) -> Result<bool, StoreError> {
        let set = match before {
            Some(before) => Statement::new("UPDATE remembered SET value = $2 WHERE name = $1 AND value = $3")
                .with(key)
                .with(value)
                .with(before),
            None => {
                Statement::new("INSERT INTO remembered (name, value) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING")
                    .with(key)
                    .with(value)
            }
        };
        Ok(self.execute(set).await? == 1)
    }
}
