//! Brings the index up to a commit: lists its files, reads those whose content is unknown, and
//! forgets what belongs to no commit that is kept.
//!
//! Each group of files is one transaction, so that a process that is killed loses one group, and
//! others go on reading. Two processes that do the same at once each find what the other wrote.

mod writing; // the rows of files and commits
mod joining; // segments of words that are joined to larger ones

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use chrono::Utc;
use sqlx::{Row, SqliteConnection};

use super::config::Config;
use super::parsed::{Parsed, Unread, parse_all};
use super::stored::from_hex;
use super::{Index, IndexError};
use crate::repository::mirror::Mirror;
use crate::repository::reading::files::TreeEntry;
use crate::repository::{CommitId, RepositoryError};
use crate::syntax::Language;

/// A content by its id in git and the number of its language, since each has its own parser.
type Key = (Vec<u8>, u8);

/// Most files of a commit that are looked at.
const MOST_FILES: usize = 100_000;
/// How often a commit is filled whose contents another process forgets meanwhile.
const ATTEMPTS: usize = 3;
/// Bytes of files that are read before they are written.
const GROUP: u64 = 8 * 1024 * 1024;

/// How many files it took to bring the index up to a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Filled {
    /// Files of the commit.
    pub files: usize,
    /// Files whose content was unknown, and was read.
    pub read: usize,
    /// True if the commit has more files than are looked at.
    pub is_cut: bool,
}

/// How much the index has of a commit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub files: usize,
    pub places: usize,
    /// Bytes of the texts whose words are in it; a text that several files have counts once.
    pub bytes: u64,
}

/// Ends of the names of files that programs wrote for programs: they have many words and answer
/// nothing.
const GENERATED: [&str; 10] = [
    ".min.js",
    ".min.css",
    ".map",
    "package-lock.json",
    "yarn.lock",
    "Cargo.lock",
    "poetry.lock",
    "pnpm-lock.yaml",
    "go.sum",
    ".svg",
];

impl Index {
    /// Opens the index of a mirror and brings it up to a commit; returns what that came to, too. A
    /// damaged one is made anew.
    pub async fn open_at(config: &Config, mirror: &Mirror, commit: &CommitId) -> Result<(Self, Filled), IndexError> {
        let index = Self::open(config, mirror).await?;
        match index.fill(commit).await {
            Ok(filled) => Ok((index, filled)),
            Err(IndexError::Damaged { reason, .. }) => {
                tracing::warn!(
                    "the code index of {} is damaged and is made anew: {reason}",
                    mirror.path().display()
                );
                index.close().await;
                Self::discard(mirror);
                let index = Self::open(config, mirror).await?;
                let filled = index.fill(commit).await?;
                Ok((index, filled))
            }
            Err(error) => Err(error),
        }
    }

    /// Brings the index up to a commit.
    pub async fn fill(&self, commit: &CommitId) -> Result<Filled, IndexError> {
        if let Some(files) = self.known_commit(commit).await? {
            return Ok(Filled {
                files,
                ..Filled::default()
            });
        }
        let (files, is_cut) = self.mirror().files(commit, MOST_FILES).await?;
        let files: Vec<TreeEntry> = files.into_iter().filter(|file| !file.is_link).collect();
        let mut read = 0;
        for attempt in 1..=ATTEMPTS {
            let known = self.known_blobs().await?;
            let unknown = self.unknown(&files, &known);
            read += unknown.len();
            self.read_all(&unknown).await?;
            if self.note_commit(commit, &files, attempt == ATTEMPTS).await? {
                break;
            }
        }
        Ok(Filled {
            files: files.len(),
            read,
            is_cut,
        })
    }

    /// Returns the files whose content is not known, each content once for each language.
    fn unknown<'f>(&self, files: &'f [TreeEntry], known: &HashMap<Key, u64>) -> Vec<&'f TreeEntry> {
        let mut seen = HashSet::new();
        let read = files.iter().filter(|file| self.is_read(file));
        read.filter(|file| key(file).is_some_and(|key| !known.contains_key(&key) && seen.insert(key)))
            .collect()
    }

    /// Returns how much the index has of a commit.
    pub async fn counts(&self, commit: &CommitId) -> Result<Counts, IndexError> {
        let tree = self.tree(commit).await?;
        let sizes = tree.contents.iter().map(|content| content.known.size);
        Ok(Counts {
            files: tree.files.len(),
            places: tree.places(),
            bytes: sizes.sum(),
        })
    }

    /// Returns the number of files of a commit that is known, and notes its use.
    async fn known_commit(&self, commit: &CommitId) -> Result<Option<usize>, IndexError> {
        let counted = sqlx::query("SELECT id, count FROM snapshot WHERE object = ?")
            .bind(commit.as_str())
            .fetch_optional(self.pool())
            .await;
        let Some(row) = counted.map_err(|error| self.failed(&error))? else {
            return Ok(None);
        };
        let noted = sqlx::query(concat!(
            "UPDATE snapshot SET used = ",
            writing::used_last!(),
            " WHERE id = ?"
        ))
        .bind(Utc::now().timestamp_micros())
        .bind(row.get::<i64, _>(0))
        .execute(self.pool())
        .await;
        // Another process that writes for long, or a full disk, is no reason to go without what is
        // there: the commit only looks less used than it is.
        if let Err(error) = noted.map_err(|error| self.failed(&error)) {
            if matches!(error, IndexError::Damaged { .. }) {
                return Err(error);
            }
            tracing::debug!("the use of the code index was not noted: {error}");
        }
        Ok(Some(usize::try_from(row.get::<i64, _>(1)).unwrap_or_default()))
    }

    async fn known_blobs(&self) -> Result<HashMap<Key, u64>, IndexError> {
        let mut connection = self.pool().acquire().await.map_err(|error| self.failed(&error))?;
        let known = known_blobs(&mut connection).await;
        known.map_err(|error| self.failed(&error))
    }

    fn is_read(&self, file: &TreeEntry) -> bool {
        file.size <= self.config().max_file_bytes && !GENERATED.iter().any(|ending| file.path.ends_with(ending))
    }

    /// Reads the unknown files, and writes one group while the next is read.
    async fn read_all(&self, unknown: &[&TreeEntry]) -> Result<(), IndexError> {
        let mut written: Arc<Vec<Parsed>> = Arc::default();
        for group in groups(unknown) {
            let (read, wrote) = tokio::join!(self.read_group(group), self.write_group(&written));
            wrote?;
            written = Arc::new(read?);
        }
        self.write_group(&written).await
    }

    async fn read_group(&self, group: &[&TreeEntry]) -> Result<Vec<Parsed>, IndexError> {
        let paths: HashMap<&str, Vec<&str>> = group.iter().fold(HashMap::new(), |mut paths, file| {
            paths
                .entry(file.object.as_str())
                .or_insert_with(Vec::new)
                .push(file.path.as_str());
            paths
        });
        let mut seen = HashSet::new();
        let objects = group.iter().map(|file| file.object.as_str());
        let objects: Vec<&str> = objects.filter(|object| seen.insert(*object)).collect();
        let mut files = Vec::new();
        self.mirror()
            .each_content(&objects, |object, content| {
                for path in paths.get(object).into_iter().flatten() {
                    files.push(Unread {
                        object: object.to_owned(),
                        path: (*path).to_owned(),
                        content: content.to_owned(),
                    });
                }
            })
            .await?;
        let parsed = tokio::task::spawn_blocking(move || parse_all(&files)).await;
        parsed.map_err(|error| {
            IndexError::Repository(RepositoryError::Unexpected {
                what: "reading files for the code index".to_owned(),
                reason: error.to_string(),
            })
        })
    }

    async fn write_group(&self, parsed: &Arc<Vec<Parsed>>) -> Result<(), IndexError> {
        if parsed.is_empty() {
            return Ok(());
        }
        let written = async {
            let mut transaction = self.pool().begin_with("BEGIN IMMEDIATE").await?;
            writing::write(&mut transaction, parsed).await?;
            transaction.commit().await
        };
        written.await.map_err(|error: sqlx::Error| self.failed(&error))
    }

    /// Notes which files a commit has, and forgets others. False if another process has forgotten
    /// contents meanwhile that were just read: then nothing is noted, unless this is the last time.
    async fn note_commit(&self, commit: &CommitId, files: &[TreeEntry], is_last: bool) -> Result<bool, IndexError> {
        let noted = async {
            let mut transaction = self.pool().begin_with("BEGIN IMMEDIATE").await?;
            let blobs = known_blobs(&mut transaction).await?;
            if !is_last && !self.unknown(files, &blobs).is_empty() {
                return Ok(false);
            }
            writing::note(&mut transaction, commit, files, &blobs).await?;
            writing::forget_others(&mut transaction).await?;
            joining::join(&mut transaction).await?;
            transaction.commit().await?;
            Ok(true)
        };
        noted.await.map_err(|error: sqlx::Error| self.failed(&error))
    }
}

async fn known_blobs(connection: &mut SqliteConnection) -> Result<HashMap<Key, u64>, sqlx::Error> {
    let rows = sqlx::query("SELECT object, language, id FROM blob")
        .fetch_all(connection)
        .await?;
    let known = rows.iter().map(|row| {
        let language = u8::try_from(row.get::<i64, _>(1)).unwrap_or(u8::MAX);
        ((row.get(0), language), row.get::<i64, _>(2).cast_unsigned())
    });
    Ok(known.collect())
}

/// Returns how a file's content is known; `None` if its id is none.
fn key(file: &TreeEntry) -> Option<Key> {
    Some((from_hex(&file.object)?, Language::of(&file.path).number()))
}

fn groups<'f>(files: &'f [&'f TreeEntry]) -> Vec<&'f [&'f TreeEntry]> {
    let mut groups = Vec::new();
    let (mut begin, mut size) = (0, 0);
    for (at, file) in files.iter().enumerate() {
        size += file.size;
        if size > GROUP {
            groups.push(&files[begin..=at]);
            (begin, size) = (at + 1, 0);
        }
    }
    groups.push(&files[begin..]);
    groups.retain(|group| !group.is_empty());
    groups
}
