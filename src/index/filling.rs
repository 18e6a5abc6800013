//! Brings the index up to a commit: lists its files, reads those whose content is unknown, and
//! forgets what belongs to no commit that is kept.
//!
//! Each group of files is one transaction, so that a process that is killed loses one group, and
//! others go on reading. Two processes that do the same at once each find what the other wrote.

mod writing; // the rows of files and commits

use std::collections::{HashMap, HashSet};

use chrono::Utc;
use sqlx::Row;

use super::config::Config;
use super::parsed::{Parsed, Unread, parse_all};
use super::{Index, IndexError};
use crate::repository::mirror::Mirror;
use crate::repository::reading::files::TreeEntry;
use crate::repository::{CommitId, RepositoryError};
use crate::syntax::Language;

/// Most files of a commit that are looked at.
const MOST_FILES: usize = 100_000;
/// Bytes of files that are read before they are written.
const GROUP: u64 = 8 * 1024 * 1024;

/// What was done.
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
        let known = self.known_blobs().await?;
        let mut unknown: Vec<&TreeEntry> = Vec::new();
        let mut seen = HashSet::new();
        for file in files.iter().filter(|file| self.is_read(file)) {
            let key = (file.object.clone(), language(&file.path));
            if !known.contains_key(&key) && seen.insert(key) {
                unknown.push(file);
            }
        }
        let read = unknown.len();
        self.read_all(&unknown).await?;
        self.note_commit(commit, &files).await?;
        Ok(Filled {
            files: files.len(),
            read,
            is_cut,
        })
    }

    /// Returns how much the index has of a commit.
    pub async fn counts(&self, commit: &CommitId) -> Result<Counts, IndexError> {
        let row = sqlx::query(
            "SELECT count(DISTINCT t.path), count(c.id) FROM snapshot s JOIN tree t ON t.snapshot = s.id \
             LEFT JOIN chunk c ON c.blob = t.blob WHERE s.object = ?",
        )
        .bind(commit.as_str())
        .fetch_one(self.pool())
        .await
        .map_err(|error| self.failed(&error))?;
        let count = |column: usize| usize::try_from(row.get::<i64, _>(column)).unwrap_or_default();
        Ok(Counts {
            files: count(0),
            places: count(1),
        })
    }

    /// Returns the number of files of a commit that is known, and notes its use.
    async fn known_commit(&self, commit: &CommitId) -> Result<Option<usize>, IndexError> {
        let counted = sqlx::query(
            "SELECT s.id, (SELECT count(*) FROM tree t WHERE t.snapshot = s.id) FROM snapshot s WHERE s.object = ?",
        )
        .bind(commit.as_str())
        .fetch_optional(self.pool())
        .await;
        let Some(row) = counted.map_err(|error| self.failed(&error))? else {
            return Ok(None);
        };
        let noted = sqlx::query("UPDATE snapshot SET used = ? WHERE id = ?")
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

    async fn known_blobs(&self) -> Result<HashMap<(String, String), i64>, IndexError> {
        let rows = sqlx::query("SELECT object, language, id FROM blob")
            .fetch_all(self.pool())
            .await;
        let rows = rows.map_err(|error| self.failed(&error))?;
        Ok(rows.iter().map(|row| ((row.get(0), row.get(1)), row.get(2))).collect())
    }

    fn is_read(&self, file: &TreeEntry) -> bool {
        file.size <= self.config().max_file_bytes && !GENERATED.iter().any(|ending| file.path.ends_with(ending))
    }

    /// Reads the unknown files, and writes one group while the next is read.
    async fn read_all(&self, unknown: &[&TreeEntry]) -> Result<(), IndexError> {
        let mut written: Vec<Parsed> = Vec::new();
        for group in groups(unknown) {
            let (read, wrote) = tokio::join!(self.read_group(group), self.write_group(&written));
            wrote?;
            written = read?;
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
        let objects: Vec<&str> = paths.keys().copied().collect();
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

    async fn write_group(&self, parsed: &[Parsed]) -> Result<(), IndexError> {
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

    async fn note_commit(&self, commit: &CommitId, files: &[TreeEntry]) -> Result<(), IndexError> {
        let blobs = self.known_blobs().await?;
        let written = async {
            let mut transaction = self.pool().begin_with("BEGIN IMMEDIATE").await?;
            writing::note(&mut transaction, commit, files, &blobs).await?;
            writing::forget_others(&mut transaction).await?;
            transaction.commit().await
        };
        written.await.map_err(|error: sqlx::Error| self.failed(&error))
    }
}

/// Returns the name under which a language is kept: that of its parser.
pub(super) fn language(path: &str) -> String {
    format!("{:?}", Language::of(path))
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
