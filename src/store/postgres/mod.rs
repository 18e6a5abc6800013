//! PostgreSQL: a server that the workers of several machines share.
//!
//! Claims follow one another by a lock of the server that a transaction holds to its end, and so
//! does the numbering of facts: PostgreSQL lets transactions run side by side, and two that both
//! find a branch free would both take it. Leases are judged by the server's clock.
//!
//! A connection can be lost at any moment. What was asked is asked again for a while
//! ([`patience`]); of a commit whose answer never came the server is asked what became of it.

mod explained; // what an error of the server means
mod patience; // for how long a lost connection is waited for
mod values; // values in statements and rows
mod link; // connections, and statements over them
mod tables; // making and migrating the tables
mod session; // who is alive, by the locks of their sessions
mod pooler; // tells whether somebody between gives sessions of the server away
mod open; // opening all of it
#[cfg(test)]
pub(super) mod tests;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::watch;

use super::StoreError;
use super::engine::{Engine, Liveness, Purpose, Transaction};
use super::sql::{Row, Statement};
use link::Link;
pub(super) use open::{GRACE, examine, open};
use session::Session;

/// An open database.
#[derive(Debug)]
pub(super) struct Postgres {
    link: Link,
    session: Session,
}

/// The first number of the server's locks that a transaction holds to its end; the second is that
/// of the installation, see [`Link::installation`].
const CLAIMING: i32 = 0x0c0d_a001;
const NUMBERING: i32 = 0x0c0d_a002;

/// A transaction that writes.
struct Writing {
    inner: sqlx::Transaction<'static, sqlx::Postgres>,
    link: Link,
    /// Its number at the server, by which its end is asked for.
    id: String,
}

#[async_trait]
impl Engine for Postgres {
    async fn execute(&self, statement: Statement) -> Result<u64, StoreError> {
        self.link.execute(&statement).await
    }

    async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        self.link.fetch(&statement).await
    }

    async fn begin(&self, purpose: Purpose) -> Result<Box<dyn Transaction>, StoreError> {
        let lock = match purpose {
            Purpose::Write => None,
            Purpose::Claim => Some(CLAIMING),
            Purpose::Number => Some(NUMBERING),
        };
        let (inner, id) = self.link.begin(lock).await?;
        Ok(Box::new(Writing {
            inner,
            link: self.link.clone(),
            id,
        }))
    }

    async fn now(&self) -> Result<DateTime<Utc>, StoreError> {
        let now = Statement::new("SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::BIGINT");
        let rows = self.link.look(&now).await?;
        let time = rows.first().map(|row| row.time(0)).transpose()?.flatten();
        time.ok_or_else(|| self.link.unusable("the server does not tell the time"))
    }

    /// The server overwrites and returns pages by itself (`autovacuum`), and old ones may stand in
    /// its log and its backups: nothing here can tell that they are gone.
    async fn settle(&self) -> Result<bool, StoreError> {
        Ok(true)
    }

    fn liveness(&self) -> &dyn Liveness {
        &self.session
    }

    async fn count_on(&self) -> Result<(), StoreError> {
        let query = Statement::new(
            "SELECT setval(pg_get_serial_sequence('facts', 'sequence'), GREATEST(MAX(sequence), 1), MAX(sequence) IS NOT NULL)
             FROM facts",
        );
        self.link.fetch(&query).await.map(|_| ())
    }

    async fn ring(&self) {
        self.link.ring().await;
    }

    fn rung(&self) -> Option<watch::Receiver<u64>> {
        Some(self.session.rung())
    }
}

#[async_trait]
impl Transaction for Writing {
    async fn execute(&mut self, statement: Statement) -> Result<u64, StoreError> {
        let done = values::query(&statement).execute(&mut *self.inner);
        let done = self.link.within(done).await;
        Ok(done.map_err(|error| self.link.failed(error))?.rows_affected())
    }

    async fn fetch(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        let rows = values::query(&statement).fetch_all(&mut *self.inner);
        let rows = self.link.within(rows).await;
        self.link.rows(rows)
    }

    async fn commit(self: Box<Self>) -> Result<(), StoreError> {
        let Self { inner, link, id } = *self;
        match link.within(inner.commit()).await {
            Err(error) if explained::is_loss(&error) => link.outcome_of(&id, error).await,
            done => done.map_err(|error| link.failed(error)),
        }
    }
}
