//! The files of a commit with their places, as the index knows them.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::Row;
use sqlx::sqlite::SqliteRow;

use super::error::unreadable;
use super::stored::places::{PlaceOf, Places};
use super::stored::{digest, paths, to_hex};
use super::{Index, IndexError};
use crate::repository::CommitId;
use crate::syntax::words;

/// Commits whose files are kept in memory.
const KEPT: usize = 4;

/// The files of a commit. Its places are numbered in the order of its contents, from 0.
#[derive(Debug, Default)]
pub(super) struct Tree {
    pub(super) files: Vec<File>,
    /// The contents, in the order of their ids.
    pub(super) contents: Vec<Content>,
    /// The places of each content, in the same order.
    pub(super) ranges: Vec<Range>,
    /// The words of each place.
    pub(super) lengths: Vec<u32>,
    /// The digest of the name of each place that has one, with the place's number, in order.
    names: Vec<(u32, usize)>,
    pub(super) paths: PathWords,
}

/// The places of a content: those of the index from `first` to before `next` are those of the
/// commit from `start` on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Range {
    pub(super) first: u64,
    pub(super) next: u64,
    pub(super) start: usize,
}

#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    /// Number of its content; `None` for a file that was not read.
    pub(super) content: Option<usize>,
}

/// A content that files of the commit have.
#[derive(Debug)]
pub(super) struct Content {
    /// Number of its first place.
    pub(super) start: usize,
    pub(super) known: Arc<Known>,
    /// The files that have it.
    pub(super) files: Vec<usize>,
}

/// A content as the index knows it, whatever commits have it.
#[derive(Debug)]
pub(super) struct Known {
    /// Number of its first place, in the whole index.
    pub(super) id: u64,
    pub(super) object: String,
    /// Bytes of its text; 0 if it is none.
    pub(super) size: u64,
    pub(super) places: Places,
}

/// The words of the paths of a commit.
#[derive(Debug, Default)]
pub(super) struct PathWords {
    /// The files that have a word in their path, and how often.
    pub(super) files: HashMap<String, Vec<(usize, usize)>>,
    /// Words of each path.
    pub(super) lengths: Vec<usize>,
}

impl Index {
    /// Returns the paths of a commit with the ids of their contents.
    pub async fn contents(&self, commit: &CommitId) -> Result<HashMap<String, String>, IndexError> {
        let tree = self.tree(commit).await?;
        let files = tree.files.iter();
        Ok(files
            .map(|file| (file.path.clone(), tree.object(file).to_owned()))
            .collect())
    }

    /// Brings the index up to a commit, and returns its files.
    pub(super) async fn tree(&self, commit: &CommitId) -> Result<Arc<Tree>, IndexError> {
        let kept = self
            .trees()
            .lock()
            .ok()
            .and_then(|trees| trees.get(commit.as_str()).cloned());
        if let Some(tree) = kept {
            return Ok(tree);
        }
        self.fill(commit).await?;
        let listed = sqlx::query("SELECT files FROM snapshot WHERE object = ?")
            .bind(commit.as_str())
            .fetch_optional(self.pool())
            .await
            .map_err(|error| self.failed(&error))?;
        // Another process may have forgotten it meanwhile; then it has no places.
        let listed: Vec<u8> = listed.map(|row| row.get(0)).unwrap_or_default();
        let mut files = Vec::new();
        paths::each(&listed, |path, id| files.push((path.to_owned(), id)))
            .ok_or_else(|| self.failed(&unreadable("the list of files of a commit")))?;
        let known = self.known(&files).await?;
        let tree = Arc::new(Tree::of(files, known));
        if let Ok(mut trees) = self.trees().lock() {
            if trees.len() >= KEPT {
                trees.clear();
            }
            trees.insert(commit.to_string(), Arc::clone(&tree));
        }
        Ok(tree)
    }

    /// Returns what is known of contents, by their ids: of most from the commits before.
    async fn known(&self, files: &[(String, u64)]) -> Result<HashMap<u64, Arc<Known>>, IndexError> {
        let mut before: HashMap<u64, Arc<Known>> = HashMap::new();
        if let Ok(trees) = self.trees().lock() {
            let contents = trees.values().flat_map(|tree| &tree.contents);
            before.extend(contents.map(|content| (content.known.id, Arc::clone(&content.known))));
        }
        let mut found = HashMap::new();
        let mut new = Vec::new();
        for (_, id) in files.iter().filter(|(_, id)| *id > 0) {
            match before.get(id) {
                Some(known) => drop(found.insert(*id, Arc::clone(known))),
                None => new.push(*id),
            }
        }
        if new.is_empty() {
            return Ok(found);
        }
        let list = serde_json::to_string(&new).unwrap_or_default();
        let rows = sqlx::query(
            "SELECT id, object, size, places FROM blob WHERE id IN (SELECT value FROM json_each(?)) ORDER BY id",
        )
        .bind(list)
        .fetch_all(self.pool())
        .await
        .map_err(|error| self.failed(&error))?;
        for row in &rows {
            let known = known(row).ok_or_else(|| self.failed(&unreadable("the places of a file")))?;
            found.insert(known.id, Arc::new(known));
        }
        Ok(found)
    }
}

fn known(row: &SqliteRow) -> Option<Known> {
    Some(Known {
        id: u64::try_from(row.get::<i64, _>(0)).ok()?,
        object: to_hex(row.get::<&[u8], _>(1)),
        size: u64::try_from(row.get::<i64, _>(2)).ok()?,
        places: Places::read(row.get::<&[u8], _>(3))?,
    })
}

impl Tree {
    fn of(files: Vec<(String, u64)>, known: HashMap<u64, Arc<Known>>) -> Self {
        let mut known: Vec<Arc<Known>> = known.into_values().collect();
        known.sort_unstable_by_key(|known| known.id);
        let mut tree = Self::default();
        for known in known {
            let start = tree.lengths.len();
            for (within, place) in known.places.each().enumerate() {
                tree.lengths.push(u32::try_from(place.length).unwrap_or(u32::MAX));
                if !place.name.is_empty() {
                    tree.names.push((digest(place.name), start + within));
                }
            }
            tree.ranges.push(Range {
                first: known.id,
                next: known.id.saturating_add(known.places.count() as u64),
                start,
            });
            tree.contents.push(Content {
                start,
                known,
                files: Vec::new(),
            });
        }
        tree.names.sort_unstable();
        for (number, (path, id)) in files.into_iter().enumerate() {
            let content = tree.contents.binary_search_by_key(&id, |content| content.known.id).ok();
            if let Some(content) = content.and_then(|at| tree.contents.get_mut(at)) {
                content.files.push(number);
            }
            tree.paths.add(number, &path);
            tree.files.push(File { path, content });
        }
        tree
    }

    /// Returns how many places the commit has.
    pub(super) fn places(&self) -> usize {
        self.lengths.len()
    }

    /// Returns the places that a name is defined in: their numbers, those of their contents, and
    /// what they are.
    pub(super) fn named(&self, name: &str) -> impl Iterator<Item = (usize, usize, PlaceOf<'_>)> {
        let digest = digest(name);
        let first = self.names.partition_point(|(other, _)| *other < digest);
        let same = self.names[first..]
            .iter()
            .take_while(move |(other, _)| *other == digest);
        let places = same.filter_map(|(_, number)| Some((*number, self.content_of(*number)?, self.place(*number)?)));
        places.filter(move |(_, _, place)| place.name == name)
    }

    /// Returns the files with a content.
    pub(super) fn with_content(&self, content: usize) -> impl Iterator<Item = (usize, &File)> {
        let files = self
            .contents
            .get(content)
            .into_iter()
            .flat_map(|content| &content.files);
        files.filter_map(|file| Some((*file, self.files.get(*file)?)))
    }

    /// Returns the id of a file's content; empty if it was not read.
    pub(super) fn object(&self, file: &File) -> &str {
        let content = file.content.and_then(|content| self.contents.get(content));
        content.map_or("", |content| &content.known.object)
    }

    /// Returns the places of a file; `None` if it was not read.
    pub(super) fn places_of(&self, file: &File) -> Option<&Places> {
        Some(&self.contents.get(file.content?)?.known.places)
    }

    /// Returns the content that a place is of, by its number.
    pub(super) fn content_of(&self, place: usize) -> Option<usize> {
        self.contents
            .partition_point(|content| content.start <= place)
            .checked_sub(1)
            // Those without places begin where the one before begins.
            .filter(|at| {
                let content = &self.contents[*at];
                place < content.start + content.known.places.count()
            })
    }

    /// Returns a place by its number.
    pub(super) fn place(&self, place: usize) -> Option<PlaceOf<'_>> {
        let content = self.contents.get(self.content_of(place)?)?;
        content.known.places.get(place - content.start)
    }

    /// Returns all places of the commit with the contents that they are of.
    pub(super) fn each_place(&self) -> impl Iterator<Item = (usize, usize, PlaceOf<'_>)> {
        self.contents.iter().enumerate().flat_map(|(at, content)| {
            let places = content.known.places.each().enumerate();
            places.map(move |(number, place)| (content.start + number, at, place))
        })
    }
}

impl PathWords {
    fn add(&mut self, file: usize, path: &str) {
        let mut length = 0;
        words::each(path, |word| {
            length += 1;
            let files = match self.files.get_mut(word) {
                Some(files) => files,
                None => self.files.entry(word.to_owned()).or_default(),
            };
            match files.last_mut() {
                Some((last, count)) if *last == file => *count += 1,
                _ => files.push((file, 1)),
            }
        });
        self.lengths.push(length);
    }
}
