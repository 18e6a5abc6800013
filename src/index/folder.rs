//! The index of a plain folder: of its files as they lie there, whether they are committed or not.
//!
//! The folder is copied into a mirror of its own, as for a local task, and is not changed. What
//! git ignores there is not in the index either.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::config::Config;
use super::filling::Filled;
use super::ingesting::{Ingest, Ingested, NotDone, Pruned};
use super::searching::{Hit, Reranker, Wanted};
use super::{Index, IndexError};
use crate::repository::mirror::Mirror;
use crate::repository::{self, CommitId, RepositoryError};

/// Beginning of the names of these mirrors, by which they are told from those of local tasks.
pub const FOLDER: &str = "folder-";
/// File within a repository's `.git` that the hook makes.
pub const MARK: &str = "coding-agent-index-changed";

/// The index of a folder, and the commit that holds its files.
pub struct FolderIndex {
    pub index: Index,
    pub commit: CommitId,
    pub folder: PathBuf,
    /// How many files it took to bring the index up to date.
    pub filled: Filled,
}

impl FolderIndex {
    /// Brings the index of a folder up to its files as they are now.
    pub async fn open(
        config: &Config,
        repository: &repository::Config,
        state_dir: &Path,
        folder: &Path,
    ) -> Result<Self, IndexError> {
        let folder = canonical(folder)?;
        let (mirror, commit) = Mirror::snapshot(repository, state_dir, &name(&folder), &folder).await?;
        let (index, filled) = Index::open_at(config, &mirror, &commit).await?;
        // It is there only where the hook is.
        let _ = std::fs::remove_file(folder.join(".git").join(MARK));
        Ok(Self {
            index,
            commit,
            folder,
            filled,
        })
    }

    /// Has the best places by words reordered by their meaning.
    #[must_use]
    pub fn reordered_by(mut self, reranker: Option<Reranker>) -> Self {
        self.index = self.index.reordered_by(reranker);
        self
    }

    /// Returns the places of the folder that answer a question best.
    pub async fn search(&self, wanted: &Wanted<'_>) -> Result<Vec<Hit>, IndexError> {
        self.index.search(&self.commit, wanted).await
    }

    /// Takes paths in, see [`Index::ingest`].
    pub async fn ingest(&self, asked: &Ingest) -> Result<Ingested, NotDone> {
        self.index.ingest(&self.commit, self.filled, asked).await
    }

    /// Leaves paths out, see [`Index::prune`].
    pub async fn prune(&self, paths: &[String]) -> Result<Pruned, NotDone> {
        self.index.prune(&self.commit, paths).await
    }

    /// Returns the file of a folder's index, if there is one.
    pub async fn file(
        repository: &repository::Config,
        state_dir: &Path,
        folder: &Path,
    ) -> Result<Option<PathBuf>, IndexError> {
        let folder = canonical(folder)?;
        if !Mirror::locals(state_dir).contains(&name(&folder)) {
            return Ok(None);
        }
        let mirror = Mirror::local(repository, state_dir, &name(&folder)).await?;
        Ok(Some(Index::file(&mirror)).filter(|file| file.is_file()))
    }
}

fn canonical(folder: &Path) -> Result<PathBuf, IndexError> {
    folder.canonicalize().map_err(|error| {
        IndexError::Repository(RepositoryError::Unexpected {
            what: format!("the folder {}", folder.display()),
            reason: format!("{error}; name an existing folder with --root"),
        })
    })
}

/// Returns the name of a folder's mirror, which is the same for the same path.
fn name(folder: &Path) -> String {
    let digest = format!("{:x}", Sha256::digest(folder.as_os_str().as_encoded_bytes()));
    format!("{FOLDER}{}", &digest[..24])
}
