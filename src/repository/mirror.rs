//! A bare mirror of one repository, fetched incrementally and shared by all runs on it.
//!
//! A run takes the mirror's lock only to fetch, to update its refs and to remove the mirror. A
//! killed git leaves lock and temporary files behind, which the next holder of the lock removes. A
//! broken mirror is deleted and made again, once.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::repository::git::address::Address;
use crate::repository::git::command::{Git, GitExit, version};
use crate::repository::git::failure::classify;
use crate::repository::git::limits::Effort;
use crate::repository::git::lock;
use crate::repository::{CommitId, Config, RepositoryError, branch_name};

/// The mirror on disk: `<state_dir>/mirrors/<host>/<path>.git`.
#[derive(Debug, Clone)]
pub struct Mirror {
    path: PathBuf,
    config: Config,
    /// The mirrored repository, the only one that is pushed to from here; `None` for a local task.
    address: Option<Address>,
}

/// Overrides the `.gitattributes` of any commit: contents are not converted, and no diff is hidden
/// as "binary".
const ATTRIBUTES: &str = "* -text !eol !working-tree-encoding !ident !filter !diff !merge !whitespace\n";

/// File in the folder `info` that marks a mirror as not only a fork's.
const OWN: &str = "not-only-a-fork";

impl Mirror {
    /// Returns the mirror of the repository at `url`, which need not exist yet.
    pub(in crate::repository) fn of(
        config: &Config,
        state_dir: &Path,
        url: &str,
    ) -> Result<(Self, Address), RepositoryError> {
        let address = Address::read(url)?;
        let mut mirror = Self::at(config, state_dir, address.place());
        mirror.address = Some(address.clone());
        Ok((mirror, address))
    }

    /// Opens the mirror of a repository without fetching; `None` if it does not exist.
    pub async fn at_hand(config: &Config, state_dir: &Path, url: &str) -> Result<Option<Self>, RepositoryError> {
        let (mirror, _) = Self::of(config, state_dir, url)?;
        let is_there = tokio::fs::try_exists(mirror.path()).await.unwrap_or(false);
        Ok(is_there.then_some(mirror))
    }

    /// Returns true if this is the mirror of the repository at `url`.
    pub fn is_of(&self, url: &str) -> bool {
        let address = Address::read(url).ok();
        address.is_some() && address == self.address
    }

    /// Returns this mirror as that of the same repository at another address, to which the forge
    /// has renamed it. Never for a fork: the address alone keeps its commits apart.
    pub fn renamed(&self, url: &str) -> Result<Self, RepositoryError> {
        Ok(Self {
            address: Some(Address::read(url)?),
            ..self.clone()
        })
    }

    pub(in crate::repository) fn own_address(&self) -> Result<&Address, RepositoryError> {
        self.address.as_ref().ok_or_else(|| RepositoryError::Unexpected {
            what: self.path.display().to_string(),
            reason: "it is the copy of a folder, and nothing can be pushed from it".to_owned(),
        })
    }

    /// Returns the mirror of another repository, in the same state folder.
    pub(in crate::repository) fn sibling(&self, address: &Address) -> Option<Self> {
        let place = self.own_address().ok()?.place();
        let root = self.path.ancestors().nth(place.components().count())?;
        Some(Self {
            path: root.join(address.place()),
            config: self.config.clone(),
            address: Some(address.clone()),
        })
    }

    /// True if runs work in the repository itself, and not only in forks of others.
    pub(in crate::repository) async fn is_own(&self) -> bool {
        tokio::fs::try_exists(self.own_mark()).await.unwrap_or(false)
    }

    pub(in crate::repository) fn own_mark(&self) -> PathBuf {
        self.path().join("info").join(OWN)
    }

    /// Returns the commits at which the history was cut, one per line; empty if it is whole.
    pub async fn cut_at(&self) -> String {
        let cut = tokio::fs::read_to_string(self.path.join("shallow")).await;
        cut.unwrap_or_default()
    }

    pub fn path(&self) -> &PathBuf {
        &self.path
    }

    /// Returns the commit a branch points to.
    pub async fn branch(&self, name: &str) -> Result<Option<CommitId>, RepositoryError> {
        match branch_name(name) {
            Ok(name) => self.commit_at(&format!("refs/heads/{name}")).await,
            // An invalid name cannot be a branch.
            Err(_) => Ok(None),
        }
    }

    /// Returns true if `ancestor` is in the history of `commit`, or is that itself.
    pub async fn descends(&self, commit: &CommitId, ancestor: &CommitId) -> Result<bool, RepositoryError> {
        self.git(format!("looking whether {commit} descends from {ancestor}"))
            .args(["merge-base", "--is-ancestor", ancestor.as_str(), commit.as_str()])
            .answer()
            .await
    }

    /// Returns the newest commit that the histories of two commits have in common; `None` if there
    /// is none, or it lies before a cut of the history.
    pub async fn fork_point(&self, one: &CommitId, other: &CommitId) -> Result<Option<CommitId>, RepositoryError> {
        let what = format!("looking where {one} and {other} parted");
        let mut printed = Vec::new();
        let ended = self
            .git(what.as_str())
            .args(["merge-base", one.as_str(), other.as_str()])
            .each(|chunk| {
                printed.extend_from_slice(chunk);
                ControlFlow::Continue(())
            })
            .await?;
        match ended.code {
            Some(0) => Ok(String::from_utf8_lossy(&printed).trim().parse().ok()),
            Some(1) => Ok(None),
            _ => Err(classify(&what, &ended.complaint)),
        }
    }

    /// Returns the newest commit of the main branch as it was fetched last: the one of that name,
    /// or else the branch that changed last. The forge knows which it is, and is not asked.
    pub async fn main_commit(&self) -> Result<Option<CommitId>, RepositoryError> {
        for name in ["main", "master"] {
            if let Some(commit) = self.branch(name).await? {
                return Ok(Some(commit));
            }
        }
        let newest = self
            .git("looking for the newest branch")
            .args([
                "for-each-ref",
                "--sort=-committerdate",
                "--count=1",
                "--format=%(objectname)",
                "refs/heads/",
            ])
            .text()
            .await?;
        Ok(newest.trim().parse().ok())
    }

    /// Returns true if there is any branch.
    pub async fn has_branches(&self) -> Result<bool, RepositoryError> {
        let first = self
            .git("looking for branches")
            .args(["for-each-ref", "--count=1", "refs/heads/"])
            .text()
            .await?;
        Ok(!first.trim().is_empty())
    }

    /// Returns the last accepted state of the run's work.
    pub async fn kept(&self, run: &str) -> Result<Option<CommitId>, RepositoryError> {
        self.commit_at(&accepted_ref(run)?).await
    }

    /// Returns the run's work in progress, as it came out of the container.
    pub async fn kept_wip(&self, run: &str) -> Result<Option<CommitId>, RepositoryError> {
        self.commit_at(&wip_ref(run)?).await
    }

    /// Keeps the commit that a run starts from until the run is forgotten. Its branch keeps it only
    /// until somebody rewrites that: a run that waits meanwhile would find nothing to go on from
    /// once the mirror was tidied.
    pub async fn keep_base(&self, run: &str, base: &CommitId) -> Result<(), RepositoryError> {
        let lock = self.lock().await?;
        self.point(&lock, &base_ref(run)?, base).await
    }

    /// Deletes the refs that keep a run's commits.
    pub async fn forget(&self, run: &str) -> Result<(), RepositoryError> {
        let _lock = self.lock().await?;
        for name in [base_ref(run)?, accepted_ref(run)?, wip_ref(run)?, best_ref(run)?] {
            self.git("forgetting a run")
                .args(["update-ref", "-d", &name])
                .bytes()
                .await?;
        }
        self.unpin_contents(run).await
    }

    /// Points one of the run's refs to `commit`. Refs change under the lock only, so that left-over
    /// lock files can be told from living ones.
    ///
    /// The caller must hold the lock since before it wrote the commit's objects: nothing refers to
    /// them yet, so that pruning in between would remove them.
    pub(in crate::repository) async fn point(
        &self,
        _lock: &File,
        name: &str,
        commit: &CommitId,
    ) -> Result<(), RepositoryError> {
        self.git("keeping a run's commits")
            .args(["update-ref", name, commit.as_str()])
            .bytes()
            .await
            .map(drop)
    }

    pub(in crate::repository) fn config(&self) -> &Config {
        &self.config
    }

    /// Prepares a git command on this mirror.
    pub(in crate::repository) fn git<'a>(&self, what: impl Into<String>) -> Git<'a> {
        Git::new(&self.config, what).directory(&self.path)
    }

    pub(in crate::repository) async fn commit_at(&self, name: &str) -> Result<Option<CommitId>, RepositoryError> {
        let listed = self
            .git(format!("looking up {name}"))
            .args([
                "for-each-ref",
                "--format=%(objectname) %(objecttype) %(refname)",
                "--",
                name,
            ])
            .text()
            .await?;
        // The pattern also matches everything below the name.
        let found = listed.lines().find_map(|line| {
            let (id, rest) = line.split_once(' ')?;
            (rest == format!("commit {name}")).then(|| id.parse().ok())?
        });
        Ok(found)
    }

    pub(in crate::repository) fn at(config: &Config, state_dir: &Path, place: &Path) -> Self {
        // Git runs in another folder, where a relative path would mean something else.
        let state_dir = std::path::absolute(state_dir).unwrap_or_else(|_| state_dir.to_owned());
        Self {
            path: state_dir.join("mirrors").join(place),
            config: config.clone(),
            address: None,
        }
    }

    /// Takes the lock and records the mirror's use.
    pub(in crate::repository) async fn lock(&self) -> Result<File, RepositoryError> {
        let lock = self.lock_without_use().await?;
        lock::note_use(&lock);
        Ok(lock)
    }

    pub(in crate::repository) async fn lock_without_use(&self) -> Result<File, RepositoryError> {
        let path = self.path.with_added_extension("lock");
        if let Some(folder) = path.parent() {
            tokio::fs::create_dir_all(folder)
                .await
                .map_err(|error| lock::at(folder, &error))?;
        }
        lock::wait(&path, Duration::from_secs(self.config.timeout_seconds)).await
    }

    /// Creates the mirror unless it exists; returns whether it existed.
    pub(in crate::repository) async fn make(&self) -> Result<bool, RepositoryError> {
        // Written last, so that a half-made mirror is made again.
        let finished = self.path.join("info").join("attributes");
        if tokio::fs::try_exists(&finished).await.unwrap_or(false) {
            return Ok(true);
        }
        version(&self.config).await?;
        Git::new(&self.config, "making a mirror")
            .args([
                "init",
                "--quiet",
                "--bare",
                "--template=",
                "--initial-branch=main",
                "--",
            ])
            .arg(&self.path)
            .bytes()
            .await?;
        let written = async {
            tokio::fs::create_dir_all(self.path.join("info")).await?;
            tokio::fs::write(&finished, ATTRIBUTES).await
        };
        written.await.map_err(|error| lock::at(&finished, &error))?;
        Ok(false)
    }

    /// Repacks the mirror after many fetches. The caller holds the lock, or two processes would do
    /// it at once.
    pub(in crate::repository) async fn tidy(&self) {
        let tidied = self
            .git("tidying the mirror")
            .with(Effort::Transfer, &self.config)
            .args([
                "-c",
                "gc.auto=3000",
                "-c",
                "gc.autoPackLimit=50",
                "-c",
                "gc.autoDetach=false",
            ])
            .args(["gc", "--auto", "--quiet"])
            .bytes()
            .await;
        if let Err(error) = tidied {
            // The mirror is usable as it is.
            tracing::warn!(mirror = %self.path.display(), %error, "the mirror could not be tidied");
        }
    }

    /// Tells whether git finds no damage in the mirror.
    pub async fn is_sound(&self) -> bool {
        let checked = self
            .git("checking the mirror")
            .with(Effort::Transfer, &self.config)
            .args(["fsck", "--connectivity-only", "--no-dangling", "--no-progress"])
            .each(|_| ControlFlow::Continue(()))
            .await;
        // Only a fault that fsck found counts. If it was killed or ran out of memory the mirror is
        // kept: it holds the work of waiting runs.
        match checked {
            Ok(GitExit {
                code: Some(code),
                complaint,
                ..
            }) => code == 0 || complaint.to_lowercase().contains("memory"),
            Ok(_) | Err(_) => true,
        }
    }
}

/// Returns the ref that keeps the commit that a run starts from.
fn base_ref(run: &str) -> Result<String, RepositoryError> {
    run_ref(run, "base")
}

/// Returns the ref that keeps a run's accepted commits.
pub(in crate::repository) fn accepted_ref(run: &str) -> Result<String, RepositoryError> {
    run_ref(run, "accepted")
}

/// Returns the ref that keeps a run's work in progress.
pub(in crate::repository) fn wip_ref(run: &str) -> Result<String, RepositoryError> {
    run_ref(run, "wip")
}

/// Returns the ref that keeps the best of a run's earlier results.
pub(in crate::repository) fn best_ref(run: &str) -> Result<String, RepositoryError> {
    run_ref(run, "best")
}

fn run_ref(run: &str, end: &str) -> Result<String, RepositoryError> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    if run.is_empty() || run.len() > 100 || !run.bytes().all(plain) {
        return Err(RepositoryError::Unexpected {
            what: "the id of a run".to_owned(),
            reason: "it may have letters, digits and '-' only".to_owned(),
        });
    }
    Ok(format!("refs/coding-agent/{run}/{end}"))
}
