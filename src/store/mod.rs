//! The store: which runs there are, where they stand, and who works on them.
//!
//! A claim gives a [`Lease`]; nothing is saved without it, and a lease that was lost saves nothing
//! (its token is out of date).
//!
//! **One run at a time on one branch.** An issue and the pull/merge request that was opened for it
//! share one, whoever asked for work on either. A run is not claimed while another one that has
//! begun is on its branch; of two that have, the older goes on.
//!
//! **One store, several databases.** All statements are here, in SQL that engines have in common
//! ([`sql`]). What differs from one to the next is behind [`engine::Engine`], in a folder for each:
//! opening, transactions, the clock, who is alive, migrations, and what its errors mean. Another
//! database is another folder, a way to name it in [`Store::open`], and the same tests.
//!
//! The store knows nothing of agents: a run's record is their document, a request is their word.

mod sql; // statements and rows as every engine takes and gives them
mod engine; // the seam to a database
pub mod config; // where the store lies
mod exclusive; // the lock that keeps two `run` commands from one state directory
pub mod file_system; // file systems on which the store must not lie
mod sqlite; // the database in a file
mod postgres; // the database on a server
mod runs; // runs, and all that belongs to one: lease, conversation, unfinished work
mod chat; // conversations in messengers
mod evaluations; // evaluations of documents for other programs
mod facts; // what happened, numbered
mod once; // what must take effect once
mod remembered; // what one process leaves to the next
mod requests; // what people ask of a run from another process
mod switches; // what holds for the whole installation
pub mod retention; // what is kept no longer
pub mod moving; // copying a store into another one
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::Arc;

use sqlx::error::ErrorKind;
use tokio::sync::watch;
use uuid::Uuid;

pub use chat::{ChatMessage, ChatWatch, HandedOver, NewSaying, Saying};
pub use config::{Address, Server};
pub use evaluations::StoredEvaluation;
pub use exclusive::{ExclusiveRun, try_exclusive};
pub use facts::{FactFilter, NewFact, NumberedFact};
pub use requests::Request;
pub use runs::followed::Followed;
pub use runs::history::{Listed, Wanted};
pub use runs::lease::Lease;
pub use runs::turns::Turn;
pub use runs::unfinished_work::StoredWork;
pub use runs::{Admission, Run};

use crate::task::id::RunId;
use engine::{Alive, Engine, Purpose, Transaction};
use runs::holding::Held;
use sql::{Row, Statement};

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another worker holds the run now: stop working on it, save nothing.
    #[error("the lease of run {0} was lost to another worker")]
    LeaseLost(RunId),
    /// The way to the database was lost and did not come back in time. What was asked for was not
    /// done; asked again later it may be.
    #[error("the store {store} cannot be reached: {reason}")]
    Away { store: String, reason: String },
    #[error("the store {store}: {source}")]
    Database {
        store: String,
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The operator; the reason says what to do.
    #[error("the store {store}: {reason}")]
    Unusable { store: String, reason: String },
}

impl StoreError {
    fn unwritable(path: &Path, error: &std::io::Error) -> Self {
        Self::Unusable {
            store: path.display().to_string(),
            reason: format!(
                "{error}; see that this user may write there, or choose another `state_dir` in config.yaml"
            ),
        }
    }

    /// Tells whether the database took a row for one that breaks a constraint, such as one that
    /// refers to another that is not there.
    fn is_of_a_constraint(&self) -> bool {
        let Self::Database { source, .. } = self else {
            return false;
        };
        let error = source.downcast_ref::<sqlx::Error>();
        let said = error.and_then(sqlx::Error::as_database_error);
        said.is_some_and(|said| !matches!(said.kind(), ErrorKind::Other))
    }
}

/// Checks that a write which only a lease allows has met its row.
fn still_held(lease: &Lease, rows: u64) -> Result<(), StoreError> {
    if rows == 0 {
        return Err(StoreError::LeaseLost(lease.run));
    }
    Ok(())
}

/// The open store. Cheap to clone; the clones are one worker.
#[derive(Debug, Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
    held: Held,
}

impl Store {
    /// Opens the store of an installation, and makes or migrates it where that is needed. This
    /// process is a worker from now on.
    pub async fn open(address: impl Into<Address>) -> Result<Self, StoreError> {
        match address.into() {
            Address::Folder(state_dir) => {
                let store = Self::over(sqlite::open(&state_dir).await?);
                store.take_over_pause_file(&state_dir).await?;
                Ok(store)
            }
            Address::Server(server) => {
                // On the heap, since what opens a file would carry its size about.
                let opening = Box::pin(postgres::open(&server, postgres::GRACE));
                Ok(Self::over(opening.await?))
            }
        }
    }

    /// Returns the store of an open database.
    fn over(engine: impl Engine + 'static) -> Self {
        Self {
            engine: Arc::new(engine),
            held: Held::default(),
        }
    }

    /// Returns a number that changes when there may be something to work on, whoever made it so;
    /// `None` for a store in a file, whose processes look by the clock.
    pub fn rung(&self) -> Option<watch::Receiver<u64>> {
        self.engine.rung()
    }

    /// Tells whether processes of other machines may use the store as well.
    pub fn is_shared(&self) -> bool {
        self.engine.rung().is_some()
    }

    /// Returns the name of this process among those that share the store.
    pub fn worker(&self) -> Uuid {
        self.engine.liveness().worker()
    }

    /// Tells whether the worker with this name is seen to live. One that cannot be seen from here,
    /// on another machine say, is not.
    pub async fn is_at_work(&self, worker: Uuid) -> bool {
        matches!(self.engine.liveness().of(worker).await, Alive::Yes | Alive::Connected)
    }

    /// Tells whether another living process has this store open.
    pub async fn has_other_workers(&self) -> Result<bool, StoreError> {
        self.engine.liveness().has_others().await
    }

    async fn execute(&self, statement: Statement) -> Result<u64, StoreError> {
        self.engine.execute(statement).await
    }

    async fn fetch(&self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        self.engine.fetch(statement).await
    }

    /// Runs a query that has one row at most, or of which the first counts.
    async fn fetch_first(&self, statement: Statement) -> Result<Option<Row>, StoreError> {
        Ok(self.engine.fetch(statement).await?.into_iter().next())
    }

    /// Runs a query for a count, or for the number of a row; 0 if it has no row.
    async fn fetch_count(&self, statement: Statement) -> Result<u64, StoreError> {
        let row = self.fetch_first(statement).await?;
        let number = row.map(|row| row.number(0)).transpose()?;
        Ok(number.unwrap_or_default().unsigned_abs())
    }

    async fn begin(&self) -> Result<Box<dyn Transaction>, StoreError> {
        self.engine.begin(Purpose::Write).await
    }
}

/// Looks whether a database on a server can be worked with; returns a sentence about it.
pub async fn examine(server: &Server) -> Result<String, StoreError> {
    Box::pin(postgres::examine(server)).await
}

/// Attempts at something that the loss of a connection broke off. Each waits for the connection by
/// itself.
const ATTEMPTS: u32 = 3;

/// Does something again that changed nothing because the connection was lost.
macro_rules! again {
    ($attempt:expr) => {{
        let mut made = 1;
        loop {
            match $attempt.await {
                Err(crate::store::StoreError::Away { .. }) if made < crate::store::ATTEMPTS => made += 1,
                done => break done,
            }
        }
    }};
}
use again;

/// Reads the ids in the first column.
fn run_ids(rows: &[Row]) -> Result<Vec<RunId>, StoreError> {
    rows.iter().map(|row| row.parsed(0)).collect()
}
