//! A bare mirror of one repository, fetched incrementally and shared by all runs on it.

use std::path::{Path, PathBuf};

use secrecy::SecretString;
use tokio::io::AsyncRead;

use super::incoming::Incoming;
use super::{CommitId, Config, RepositoryError};

/// The mirror on disk: `<state_dir>/mirrors/<host>/<path>.git`.
#[derive(Debug, Clone)]
pub struct Mirror {}

/// A remote and how to log in there; no credentials for a local path.
#[derive(Debug, Clone)]
pub struct Remote {
    pub url: String,
    pub login: Option<(String, SecretString)>,
}

/// An entry of a commit's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Lossless where the name is UTF-8, else with replacement characters.
    pub path: String,
    pub size: u64,
}

impl Mirror {
    /// Opens the mirror of `remote`, makes it if missing, and fetches all branches (`refs/heads/*` to `refs/heads/*`, pruned).
    /// Two runs on one repository wait for each other (a lock file that the kernel lets go).
    pub async fn fetch(_config: &Config, _state_dir: &Path, _remote: &Remote) -> Result<Self, RepositoryError> {
        todo!()
    }

    /// Opens a mirror that is not fetched from anywhere, for a local task: a snapshot of `folder` (what git would add: `.gitignore`
    /// respected, filters off) becomes one commit on top of the folder's HEAD if it is a repository; returns that commit.
    pub async fn snapshot(
        _config: &Config,
        _state_dir: &Path,
        _name: &str,
        _folder: &Path,
    ) -> Result<(Self, CommitId), RepositoryError> {
        todo!()
    }

    pub fn path(&self) -> &PathBuf {
        todo!()
    }

    /// Returns the commit a branch points to.
    pub async fn branch(&self, _name: &str) -> Result<Option<CommitId>, RepositoryError> {
        todo!()
    }

    /// Returns the files of a commit, at most `limit`, and whether there are more.
    pub async fn files(&self, _commit: &CommitId, _limit: usize) -> Result<(Vec<Entry>, bool), RepositoryError> {
        todo!()
    }

    /// Returns a file's bytes, or `None` where there is no such file; larger than `max_bytes` is an error.
    pub async fn file(
        &self,
        _commit: &CommitId,
        _path: &str,
        _max_bytes: u64,
    ) -> Result<Option<Vec<u8>>, RepositoryError> {
        todo!()
    }

    /// Searches the text files of a commit for a fixed string or extended regular expression; `path:line:text`, at most `limit` lines.
    pub async fn search(
        &self,
        _commit: &CommitId,
        _pattern: &str,
        _limit: usize,
    ) -> Result<Vec<String>, RepositoryError> {
        todo!()
    }

    /// Returns a pack of everything reachable from `tips`, streamed, for `git index-pack --stdin` on the other side.
    /// The reader fails at its end when git failed.
    pub async fn pack(&self, _tips: &[CommitId]) -> Result<Box<dyn AsyncRead + Send + Unpin>, RepositoryError> {
        todo!()
    }

    /// Takes a pack of new objects from a container into a quarantine beside the mirror's objects: size-limited, `fsck`ed.
    pub async fn receive(&self, _pack: impl AsyncRead + Send + Unpin) -> Result<Incoming, RepositoryError> {
        todo!()
    }

    /// Returns the commit kept under `refs/coding-agent/<run>`: the last accepted state of the run's work.
    pub async fn kept(&self, _run: &str) -> Result<Option<CommitId>, RepositoryError> {
        todo!()
    }

    /// Forgets it.
    pub async fn forget(&self, _run: &str) -> Result<(), RepositoryError> {
        todo!()
    }

    /// Pushes a commit of the mirror by id to `branch` of `remote`, fast-forward only. Pushing what is there already is no error.
    pub async fn push(&self, _remote: &Remote, _commit: &CommitId, _branch: &str) -> Result<(), RepositoryError> {
        todo!()
    }

    /// Returns the unified diff between two commits (no external diff, no textconv), at most `max_bytes`, and whether it was cut.
    pub async fn diff(
        &self,
        _from: &CommitId,
        _to: &CommitId,
        _max_bytes: usize,
    ) -> Result<(String, bool), RepositoryError> {
        todo!()
    }

    /// Applies the difference between two commits to a plain folder, all or nothing, binary files and modes included.
    pub async fn apply(&self, _from: &CommitId, _to: &CommitId, _folder: &Path) -> Result<(), RepositoryError> {
        todo!()
    }
}
