//! The database of an index: its tables, how it is opened, and how it is made anew.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use sqlx::SqlitePool;
use sqlx::sqlite::{SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};

use super::config::Config;
use super::left_out::LeftOut;
use super::searching::Reranker;
use super::{Index, IndexError};
use crate::repository::mirror::Mirror;
use crate::repository::reading::content_reader::ContentReader;

/// The form of the tables and of the bytes in them, which is in the file's name: a program of
/// another version makes a file of its own. Raise it whenever a place, a word or a table changes.
const FORMAT: u32 = 2;
const NAME: &str = "code-index";

/// Longest wait for another process that writes.
const PATIENCE: Duration = Duration::from_secs(5);
/// Pause until a new file that another process is making is opened again.
const BREATH: Duration = Duration::from_millis(20);
/// Number of connections: one that writes, and one that reads meanwhile.
const CONNECTIONS: u32 = 2;

/// The tables, whose `BLOB` columns hold bytes as `stored` writes them. The id of a content is that
/// of its first place, and no id is given twice: words are kept in segments, one for each time that
/// files were read, with the ids of the places that they stand in. The text is in none of them,
/// because the repository has it.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS blob (
    id INTEGER PRIMARY KEY, object BLOB NOT NULL, language INTEGER NOT NULL, size INTEGER NOT NULL, count INTEGER NOT NULL,
    places BLOB NOT NULL, uses BLOB NOT NULL, UNIQUE (object, language));
CREATE TABLE IF NOT EXISTS snapshot (
    id INTEGER PRIMARY KEY, object TEXT NOT NULL UNIQUE, used INTEGER NOT NULL, count INTEGER NOT NULL, files BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS segment (
    id INTEGER PRIMARY KEY, first INTEGER NOT NULL, next INTEGER NOT NULL, count INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS block (
    id INTEGER PRIMARY KEY, segment INTEGER NOT NULL, first TEXT NOT NULL, data BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS block_by_word ON block (segment, first);
";

impl Index {
    /// Opens the index of a mirror, and makes it if there is none. A damaged one is made anew.
    pub async fn open(config: &Config, mirror: &Mirror) -> Result<Self, IndexError> {
        let file = Self::file(mirror);
        remove_older(mirror.path());
        match connect(&file).await {
            Err(IndexError::Damaged { .. }) => {
                tracing::warn!("the code index {} is damaged and is made anew", file.display());
                remove(&file);
                connect(&file).await
            }
            other => other,
        }
        .map(|pool| Self {
            mirror: mirror.clone(),
            config: config.clone(),
            pool,
            left_out: LeftOut::of(mirror.path()),
            texts: ContentReader::of(mirror),
            reranker: None,
            trees: Arc::new(Mutex::new(HashMap::new())),
        })
    }

    /// Returns where the index of a mirror lies.
    pub fn file(mirror: &Mirror) -> PathBuf {
        mirror.path().join(format!("{NAME}-{FORMAT}.sqlite"))
    }

    /// Removes the index of a mirror; it is made anew when it is needed.
    pub fn discard(mirror: &Mirror) {
        remove(&Self::file(mirror));
    }

    pub fn mirror(&self) -> &Mirror {
        &self.mirror
    }

    pub(super) fn pool(&self) -> &SqlitePool {
        &self.pool
    }

    /// Has the best places by words reordered by their meaning.
    #[must_use]
    pub fn reordered_by(mut self, reranker: Option<Reranker>) -> Self {
        self.reranker = reranker;
        self
    }

    pub(super) fn reranker(&self) -> Option<&Reranker> {
        self.reranker.as_ref()
    }

    pub(super) fn left_out(&self) -> &LeftOut {
        &self.left_out
    }

    /// Reads the texts of places.
    pub(super) fn texts(&self) -> &ContentReader {
        &self.texts
    }

    pub(super) fn config(&self) -> &Config {
        &self.config
    }

    pub(super) fn trees(&self) -> &Mutex<HashMap<String, Arc<super::tree::Tree>>> {
        &self.trees
    }

    /// Returns what an error of the database means. A damaged file is removed, so that whoever
    /// opens it next makes it anew.
    pub(super) fn failed(&self, error: &sqlx::Error) -> IndexError {
        let error = IndexError::of(&Self::file(&self.mirror), error);
        if matches!(error, IndexError::Damaged { .. }) {
            Self::discard(&self.mirror);
        }
        error
    }

    /// Closes the file, and writes what is beside it into it.
    pub async fn close(self) {
        self.pool.close().await;
    }
}

/// Opens the file, and makes it if there is none. Where several processes open a new file at once,
/// one changes its journal mode, and the others are told at that moment that it is locked, whatever
/// their busy time-out is; they try again.
async fn connect(file: &Path) -> Result<SqlitePool, IndexError> {
    let begun = Instant::now();
    loop {
        match try_connect(file).await {
            Ok(pool) => return Ok(pool),
            Err(error) if IndexError::is_locked(&error) && begun.elapsed() < PATIENCE => {
                tokio::time::sleep(BREATH).await;
            }
            Err(error) => return Err(IndexError::of(file, &error)),
        }
    }
}

async fn try_connect(file: &Path) -> Result<SqlitePool, sqlx::Error> {
    // What a power cut takes is made again; a file that it breaks is seen to be damaged.
    let mut options = SqliteConnectOptions::new()
        .filename(file)
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Normal)
        .pragma("cache_size", "-32768")
        .pragma("temp_store", "memory")
        .busy_timeout(PATIENCE);
    if std::fs::metadata(file).map_or(0, |file| file.len()) == 0 {
        // What is forgotten makes the file smaller. To say so again would wait for whoever writes.
        options = options.auto_vacuum(SqliteAutoVacuum::Full);
    }
    let pool = SqlitePoolOptions::new()
        .max_connections(CONNECTIONS)
        .acquire_timeout(PATIENCE * 2)
        .connect_with(options)
        .await?;
    sqlx::raw_sql(TABLES).execute(&pool).await?;
    Ok(pool)
}

fn remove(file: &Path) {
    for ending in ["", "-wal", "-shm"] {
        let mut path = file.as_os_str().to_owned();
        path.push(ending);
        // What is not there need not be removed; what cannot be is told when it is opened.
        let _ = std::fs::remove_file(path);
    }
}

/// Removes the files of programs of earlier versions.
fn remove_older(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| {
            let rest = name.strip_prefix(NAME)?.strip_prefix('-')?;
            rest.strip_suffix(".sqlite")?.parse::<u32>().ok()
        });
        if number.is_some_and(|number| number < FORMAT) {
            remove(&entry.path());
        }
    }
}
