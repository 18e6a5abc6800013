//! `SQLite` in WAL mode: a file for one machine, whose workers the kernel tells apart by locks.
//!
//! One connection a process and `BEGIN IMMEDIATE` make transactions follow one another, so that a
//! claim needs no lock of its own.

mod explained; // what an error of the database means
mod worker; // who is alive, by the locks that the kernel holds
mod open; // opening the file, and migrating it
#[cfg(test)]
pub(super) mod tests;

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::query::Query;
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Row as _, SqlitePool, TypeInfo as _, ValueRef as _};

use super::StoreError;
use super::engine::{Engine, Liveness, Purpose, Transaction};
use super::sql::{Cell, Row, Statement};
use explained::failed;
pub(super) use open::open;
use worker::Worker;

/// An open database file.
#[derive(Debug)]
pub(super) struct Sqlite {
    pool: SqlitePool,
    worker: Worker,
    file: File,
}

/// The path of the database, for sentences about it.
#[derive(Debug, Clone)]
struct File {
    path: PathBuf,
    name: Arc<str>,
}

/// A transaction that writes.
struct Writing {
    inner: sqlx::Transaction<'static, sqlx::Sqlite>,
    file: File,
}

impl Sqlite {
    fn new(pool: SqlitePool, worker: Worker, path: PathBuf) -> Self {
        let name = path.display().to_string().into();
        Self {
            pool,
            worker,
            file: File { path, name },
        }
    }
}

#[async_trait]
impl Engine for Sqlite {
    async fn execute(&self, statement: Statement) -> Result<u64, StoreError> {
        let done = query(statement).execute(&self.pool).await;
        Ok(done.map_err(|error| self.file.failed(error))?.rows_affected())
    }

    async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let rows = query(statement).fetch_all(&self.pool).await;
        self.file.rows(rows)
    }

    /// Takes the write lock at once (IMMEDIATE): a transaction that begins by reading and then
    /// writes would fail with "locked" instead of waiting.
    async fn begin(&self, _purpose: Purpose) -> Result<Box<dyn Transaction>, StoreError> {
        let begun = self.pool.begin_with("BEGIN IMMEDIATE").await;
        Ok(Box::new(Writing {
            inner: begun.map_err(|error| self.file.failed(error))?,
            file: self.file.clone(),
        }))
    }

    /// Returns this machine's time, since all that share the file are on one machine.
    async fn now(&self) -> Result<DateTime<Utc>, StoreError> {
        Ok(Utc::now())
    }

    /// Writes everything into the file itself and empties the log beside it. If another process
    /// reads at this moment, the log stays, and the last process to close the store empties it.
    async fn settle(&self) -> Result<bool, StoreError> {
        let rows = self.fetch(Statement::new("PRAGMA wal_checkpoint(TRUNCATE)")).await?;
        Ok(rows.first().map(|row| row.number(0)).transpose()? == Some(0))
    }

    fn liveness(&self) -> &dyn Liveness {
        &self.worker
    }
}

#[async_trait]
impl Transaction for Writing {
    async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError> {
        let done = query(statement).execute(&mut *self.inner).await;
        Ok(done.map_err(|error| self.file.failed(error))?.rows_affected())
    }

    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let rows = query(statement).fetch_all(&mut *self.inner).await;
        self.file.rows(rows)
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let Self { inner, file } = *self;
        inner.commit().await.map_err(|error| file.failed(error))
    }
}

impl File {
    fn failed(&self, error: sqlx::Error) -> StoreError {
        failed(&self.path, error)
    }

    fn rows(&self, rows: Result<Vec<SqliteRow>, sqlx::Error>) -> Result<Vec<Row>, StoreError> {
        let read = |row: SqliteRow| {
            let cells: Result<Vec<_>, _> = (0..row.len()).map(|column| cell(&row, column)).collect();
            Ok(Row {
                store: Arc::clone(&self.name),
                cells: cells.map_err(|error| self.failed(error))?,
            })
        };
        rows.map_err(|error| self.failed(error))?
            .into_iter()
            .map(read)
            .collect()
    }
}

fn query(statement: Statement) -> Query<'static, sqlx::Sqlite, SqliteArguments> {
    let bare = sqlx::query(statement.text);
    statement.values.into_iter().fold(bare, |query, value| match value {
        Cell::Null => query.bind(None::<String>),
        Cell::Text(text) => query.bind(text),
        Cell::Number(number) => query.bind(number),
        Cell::Bytes(bytes) => query.bind(bytes),
    })
}

fn cell(row: &SqliteRow, column: usize) -> Result<Cell, sqlx::Error> {
    let value = row.try_get_raw(column)?;
    if value.is_null() {
        return Ok(Cell::Null);
    }
    let kind = value.type_info().name().to_owned();
    Ok(match kind.as_str() {
        "TEXT" => Cell::Text(row.try_get_unchecked(column)?),
        "BLOB" => Cell::Bytes(row.try_get_unchecked(column)?),
        _ => Cell::Number(row.try_get_unchecked(column)?),
    })
}
