//! The files of a commit, as the index knows them.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::Row;

use super::{Index, IndexError};
use crate::repository::CommitId;

/// Commits whose files are kept in memory.
const KEPT: usize = 4;

/// The files of a commit.
#[derive(Debug, Default)]
pub(super) struct Tree {
    /// Path and id of its content by the id of the path.
    pub(super) files: HashMap<i64, File>,
    /// Ids of the paths by the id of the content.
    pub(super) by_blob: HashMap<i64, Vec<i64>>,
}

#[derive(Debug)]
pub(super) struct File {
    pub(super) path: String,
    pub(super) object: String,
}

impl Index {
    /// Returns the paths of a commit with the ids of their contents.
    pub async fn contents(&self, commit: &CommitId) -> Result<HashMap<String, String>, IndexError> {
        let tree = self.tree(commit).await?;
        let files = tree.files.values();
        Ok(files.map(|file| (file.path.clone(), file.object.clone())).collect())
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
        let rows = sqlx::query(
            "SELECT t.path, p.path, t.blob, coalesce(b.object, '') FROM snapshot s JOIN tree t ON t.snapshot = s.id \
             JOIN path p ON p.id = t.path LEFT JOIN blob b ON b.id = t.blob WHERE s.object = ?",
        )
        .bind(commit.as_str())
        .fetch_all(self.pool())
        .await
        .map_err(|error| self.failed(&error))?;
        let mut tree = Tree::default();
        for row in &rows {
            let (path, blob): (i64, i64) = (row.get(0), row.get(2));
            let file = File {
                path: row.get(1),
                object: row.get(3),
            };
            tree.files.insert(path, file);
            tree.by_blob.entry(blob).or_default().push(path);
        }
        let tree = Arc::new(tree);
        if let Ok(mut trees) = self.trees().lock() {
            if trees.len() >= KEPT {
                trees.clear();
            }
            trees.insert(commit.to_string(), Arc::clone(&tree));
        }
        Ok(tree)
    }
}

impl Tree {
    /// Returns the files with a content.
    pub(super) fn with_content(&self, blob: i64) -> impl Iterator<Item = (i64, &File)> {
        let paths = self.by_blob.get(&blob).into_iter().flatten();
        paths.filter_map(|path| Some((*path, self.files.get(path)?)))
    }
}
