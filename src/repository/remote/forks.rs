//! Mirrors of forks, which are removed with the last run that needs them.
//!
//! A labelled request from a fork copies a stranger's whole repository, of any size, onto the disk.
//! Each run on it leaves a note beside the mirror, and the run that removes the last note removes
//! the mirror. A repository that runs also work in directly is marked, and stays.

use std::path::{Path, PathBuf};

use crate::repository::git::address::Remote;
use crate::repository::git::lock;
use crate::repository::git::progress::Told;
use crate::repository::mirror::{Mirror, accepted_ref, wip_ref};
use crate::repository::missing::unless_missing;
use crate::repository::{CommitId, Config, RepositoryError};

impl Mirror {
    /// Opens and fetches the mirror of a fork for `run`, whose note stays beside it until
    /// [`Mirror::leave_fork`].
    pub async fn fetch_fork(
        config: &Config,
        state_dir: &Path,
        remote: &Remote,
        run: &str,
        progress: Told<'_>,
    ) -> Result<Self, RepositoryError> {
        let (mirror, _) = Self::of(config, state_dir, &remote.url)?;
        let note = mirror.note_of(run)?;
        {
            // Held while writing, so that a run that leaves concurrently either sees the note or
            // has removed the mirror before.
            let _lock = mirror.lock().await?;
            let written = async {
                tokio::fs::create_dir_all(mirror.notes()).await?;
                tokio::fs::write(&note, b"").await
            };
            written.await.map_err(|error| lock::at(&note, &error))?;
        }
        Self::fetch_anyones(config, state_dir, remote, progress).await
    }

    /// Removes the note of `run`, and the mirror if no other run needs it. Returns whether the
    /// mirror was removed.
    pub async fn leave_fork(config: &Config, state_dir: &Path, url: &str, run: &str) -> Result<bool, RepositoryError> {
        let (mirror, _) = Self::of(config, state_dir, url)?;
        let note = mirror.note_of(run)?;
        let _lock = mirror.lock().await?;
        unless_missing(tokio::fs::remove_file(&note).await).map_err(|error| lock::at(&note, &error))?;
        // Fails while the folder contains another run's note.
        let is_last = unless_missing(tokio::fs::remove_dir(mirror.notes()).await).is_ok();
        let is_own = tokio::fs::try_exists(mirror.own_mark()).await.unwrap_or(true);
        if is_own || !is_last {
            return Ok(false);
        }
        unless_missing(tokio::fs::remove_dir_all(mirror.path()).await)
            .map_err(|error| lock::at(mirror.path(), &error))?;
        Ok(true)
    }

    /// Writes the accepted commits of `run` after `base`, and its work in progress, into the bundle
    /// `file`, which `git fetch` reads. It is no larger than the packs that were received, whatever
    /// the commits unpack to.
    pub async fn bundle(&self, run: &str, base: &CommitId, file: &Path) -> Result<(), RepositoryError> {
        let mut names = Vec::new();
        if self.kept(run).await?.is_some() {
            names.push(accepted_ref(run)?);
        }
        // An interrupted run has only this, or has it newer than its accepted commits.
        if self.kept_wip(run).await?.is_some() {
            names.push(wip_ref(run)?);
        }
        // A git that was killed leaves its lock, and the next one would refuse to write.
        let left = file.with_added_extension("lock");
        unless_missing(tokio::fs::remove_file(&left).await).map_err(|error| lock::at(&left, &error))?;
        self.git("keeping the work in a file")
            .args(["bundle", "create", "--quiet"])
            .arg(file)
            .args(&names)
            .args(["--not", base.as_str()])
            .bytes()
            .await
            .map(drop)
    }

    fn notes(&self) -> PathBuf {
        self.path().with_added_extension("runs")
    }

    fn note_of(&self, run: &str) -> Result<PathBuf, RepositoryError> {
        // Validates the id, which becomes a file name.
        accepted_ref(run)?;
        Ok(self.notes().join(run))
    }
}
