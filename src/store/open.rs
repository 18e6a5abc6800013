//! Opening the book: the folder, the lock, the migrations.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Sqlite, Transaction};
use tokio::time::{Instant, sleep};

use super::worker::{Worker, sweep};
use super::{Store, StoreError, row};

static MIGRATIONS: Migrator = sqlx::migrate!("src/store/migrations");

/// Longest wait for another process that opens the store, writes to it, or for a free connection.
const PATIENCE: Duration = Duration::from_secs(30);
/// One writer at a time is `SQLite`'s rule anyway, and what one connection writes empties the
/// others' caches.
const CONNECTIONS: u32 = 1;

/// The proof that this is the only `run` on the state directory. Dropping it, like dying, lets the
/// next one in.
#[derive(Debug)]
pub struct ExclusiveRun {
    _lock: File,
}

/// Takes the state directory for one `run`, or returns `None` where another one has it.
pub fn try_exclusive(state_dir: &Path) -> Result<Option<ExclusiveRun>, StoreError> {
    let path = state_dir.join("run.lock");
    let unusable = |error: &io::Error| unusable(&path, error);
    std::fs::create_dir_all(state_dir).map_err(|error| unusable(&error))?;
    match try_lock_file(&path).map_err(|error| unusable(&error))? {
        Some(lock) => Ok(Some(ExclusiveRun { _lock: lock })),
        None => Ok(None),
    }
}

impl Store {
    /// Opens (and makes or migrates) `<state_dir>/coding-agent.db` and takes this process's worker
    /// lock.
    pub async fn open(state_dir: &Path) -> Result<Self, StoreError> {
        let path = state_dir.join("coding-agent.db");
        let workers = state_dir.join("workers");
        std::fs::create_dir_all(&workers).map_err(|error| unusable(&workers, &error))?;

        // `sqlx` locks nothing while it migrates SQLite, so two first starts at once would both
        // make the tables.
        let opening = wait_for_lock(&workers.join("opening")).await?;
        sweep(&workers).map_err(|error| unusable(&workers, &error))?;
        let worker = Worker::enter(&workers).map_err(|error| unusable(&workers, &error))?;

        // NORMAL keeps the file sound and all that a killed process wrote; only a power cut can
        // take the last writes back, and then the run goes on from the step before.
        let options = SqliteConnectOptions::new()
            .filename(&path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Normal)
            .foreign_keys(true)
            // What is deleted is overwritten: a page that is free or used again holds nothing of
            // it.
            .pragma("secure_delete", "ON")
            .busy_timeout(PATIENCE);
        let pool = SqlitePoolOptions::new()
            .max_connections(CONNECTIONS)
            .acquire_timeout(PATIENCE * 2)
            .connect_with(options)
            .await
            .map_err(|error| at_opening(&path, error))?;
        MIGRATIONS
            .run(&pool)
            .await
            .map_err(|error| at_migrating(&path, error))?;
        drop(opening);
        Ok(Self {
            pool,
            worker: Arc::new(worker),
            path,
        })
    }

    /// Begins a transaction that writes. IMMEDIATE takes the write lock now: a transaction that
    /// begins by reading and then writes would fail with "locked" instead of waiting.
    pub(super) async fn begin(&self) -> Result<Transaction<'static, Sqlite>, StoreError> {
        self.pool
            .begin_with("BEGIN IMMEDIATE")
            .await
            .map_err(|error| self.failed(error))
    }
}

/// Waits for the lock without a blocking thread: one that waits in the kernel cannot be cancelled.
async fn wait_for_lock(path: &Path) -> Result<File, StoreError> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(lock) = try_lock_file(path).map_err(|error| unusable(path, &error))? {
            return Ok(lock);
        }
        if Instant::now() > end {
            return Err(StoreError::Unusable {
                path: path.display().to_string(),
                reason:
                    "another process has been opening the store for half a minute: see which (`fuser` names it) and \
                         end it"
                        .to_owned(),
            });
        }
        sleep(Duration::from_millis(10)).await;
    }
}

fn try_lock_file(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn unusable(path: &Path, error: &io::Error) -> StoreError {
    StoreError::Unusable {
        path: path.display().to_string(),
        reason: format!("{error}; see that this user may write there, or choose another `state_dir` in config.yaml"),
    }
}

fn at_opening(path: &Path, error: sqlx::Error) -> StoreError {
    let path = path.display().to_string();
    match row::explained(&error) {
        Some(reason) => StoreError::Unusable { path, reason },
        None => StoreError::Database { path, source: error },
    }
}

fn at_migrating(path: &Path, error: MigrateError) -> StoreError {
    let reason = match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => return at_opening(path, error),
        MigrateError::VersionMissing(version) => format!(
            "it was written by a newer version of the program (step {version} is unknown here): update the program, or \
             choose another `state_dir`"
        ),
        other => format!("its tables are not those of this program ({other}): move the file away and start again"),
    };
    StoreError::Unusable {
        path: path.display().to_string(),
        reason,
    }
}
