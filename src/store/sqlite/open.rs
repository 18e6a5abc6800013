//! Opening the database: the folder, the lock, the migrations.

use std::fs::File;
use std::path::Path;
use std::time::Duration;

use sqlx::migrate::Migrator;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tokio::time::{Instant, sleep};

use super::Sqlite;
use super::explained::{at_migrating, failed};
use super::worker::{Worker, sweep};
use crate::file_lock::try_lock_at;
use crate::store::StoreError;
use crate::store::file_system;

static MIGRATIONS: Migrator = sqlx::migrate!("src/store/sqlite/migrations");

/// Longest wait for another process that opens the store, writes to it, or for a free connection.
const PATIENCE: Duration = Duration::from_secs(30);
/// Maximum number of connections. `SQLite` has one writer at a time anyway, and what one connection
/// writes empties the caches of the others.
const CONNECTIONS: u32 = 1;

/// Opens (and makes or migrates) `<state_dir>/coding-agent.db` and takes this process's worker
/// lock.
pub(in crate::store) async fn open(state_dir: &Path) -> Result<Sqlite, StoreError> {
    let path = state_dir.join("coding-agent.db");
    let workers = state_dir.join("workers");
    let at_workers = |error| StoreError::unwritable(&workers, &error);
    std::fs::create_dir_all(&workers).map_err(at_workers)?;
    if let Some(doubt) = file_system::doubt(state_dir) {
        tracing::warn!("the state directory {}: {doubt}", state_dir.display());
    }

    // `sqlx` locks nothing while it migrates SQLite, so two first starts at once would both make
    // the tables.
    let opening = wait_for_lock(&workers.join("opening")).await?;
    sweep(&workers).map_err(at_workers)?;
    let worker = Worker::enter(&workers).map_err(at_workers)?;

    // NORMAL keeps the file sound and all that a killed process wrote; only a power cut can take
    // the last writes back, and then the run goes on from the step before.
    let options = SqliteConnectOptions::new()
        .filename(&path)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .foreign_keys(true)
        // What is deleted is overwritten: a page that is free or used again holds nothing of it.
        .pragma("secure_delete", "ON")
        .busy_timeout(PATIENCE);
    let pool = SqlitePoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(PATIENCE * 2)
        .connect_with(options)
        .await
        .map_err(|error| failed(&path, error))?;
    MIGRATIONS
        .run(&pool)
        .await
        .map_err(|error| at_migrating(&path, error))?;
    drop(opening);
    Ok(Sqlite::new(pool, worker, path))
}

/// Waits for the lock without a blocking thread: one that waits in the kernel cannot be cancelled.
async fn wait_for_lock(path: &Path) -> Result<File, StoreError> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(lock) = try_lock_at(path).map_err(|error| StoreError::unwritable(path, &error))? {
            return Ok(lock);
        }
        if Instant::now() > end {
            return Err(StoreError::Unusable {
                store: path.display().to_string(),
                reason:
                    "another process has been opening the store for half a minute: see which (`fuser` names it) and \
                         end it"
                        .to_owned(),
            });
        }
        sleep(Duration::from_millis(10)).await;
    }
}
