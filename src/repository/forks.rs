//! The mirror of a fork goes with the last run that needs it.
//!
//! A labelled request from a fork brings a whole repository of a stranger's onto the disk, of any
//! size. Each run that works in it leaves a note beside the mirror, and the run whose note is the
//! last one takes the mirror along. A repository that runs work in for its own sake is marked, and
//! stays.

use std::io;
use std::path::{Path, PathBuf};

use super::address::Remote;
use super::lock;
use super::mirror::{Mirror, accepted_ref, wip_ref};
use super::{CommitId, Config, RepositoryError};

/// The mark of a mirror that is not only a fork's, in the folder `info`.
const OWN: &str = "not-only-a-fork";

impl Mirror {
    /// Opens and fetches the mirror of a fork for `run`, which is noted beside it until
    /// [`Mirror::leave_fork`].
    pub async fn fetch_fork(
        config: &Config,
        state_dir: &Path,
        remote: &Remote,
        run: &str,
    ) -> Result<Self, RepositoryError> {
        let (mirror, _) = Self::of(config, state_dir, &remote.url)?;
        let note = mirror.note_of(run)?;
        {
            // Held while it is written, so that the run that leaves meanwhile sees it or has
            // removed everything before.
            let _lock = mirror.lock().await?;
            let written = async {
                tokio::fs::create_dir_all(mirror.notes()).await?;
                tokio::fs::write(&note, b"").await
            };
            written.await.map_err(|error| lock::at(&note, &error))?;
        }
        Self::fetch_anyones(config, state_dir, remote).await
    }

    /// Opens the mirror of a fork as it lies on the disk; `None` where there is none.
    pub async fn fork_at_hand(config: &Config, state_dir: &Path, url: &str) -> Result<Option<Self>, RepositoryError> {
        let (mirror, _) = Self::of(config, state_dir, url)?;
        let is_there = tokio::fs::try_exists(mirror.path()).await.unwrap_or(false);
        Ok(is_there.then_some(mirror))
    }

    /// Takes the note of `run` away, and the mirror with it where no other run needs it. Returns
    /// whether it was removed.
    pub async fn leave_fork(config: &Config, state_dir: &Path, url: &str, run: &str) -> Result<bool, RepositoryError> {
        let (mirror, _) = Self::of(config, state_dir, url)?;
        let note = mirror.note_of(run)?;
        let _lock = mirror.lock().await?;
        unless_missing(tokio::fs::remove_file(&note).await).map_err(|error| lock::at(&note, &error))?;
        // Refused by the system as long as another run's note is in it.
        let is_last = unless_missing(tokio::fs::remove_dir(mirror.notes()).await).is_ok();
        let is_own = tokio::fs::try_exists(mirror.own_mark()).await.unwrap_or(true);
        if is_own || !is_last {
            return Ok(false);
        }
        unless_missing(tokio::fs::remove_dir_all(mirror.path()).await)
            .map_err(|error| lock::at(mirror.path(), &error))?;
        Ok(true)
    }

    /// Writes what was accepted of `run` after `base`, and its work in progress, into `file`, as a
    /// bundle that `git fetch` reads. Such a file is no larger than what was taken in, whatever the
    /// commits unpack to.
    pub async fn bundle(&self, run: &str, base: &CommitId, file: &Path) -> Result<(), RepositoryError> {
        let mut names = Vec::new();
        if self.kept(run).await?.is_some() {
            names.push(accepted_ref(run)?);
        }
        // An interrupted run has nothing else, or something newer than what was accepted of it.
        if self.kept_wip(run).await?.is_some() {
            names.push(wip_ref(run)?);
        }
        self.git("keeping the work in a file")
            .args(["bundle", "create", "--quiet"])
            .arg(file)
            .args(&names)
            .args(["--not", base.as_str()])
            .bytes()
            .await
            .map(drop)
    }

    /// Marks the mirror as one that does not go with the runs on a fork. The lock is held.
    pub(super) async fn mark_as_own(&self) -> Result<(), RepositoryError> {
        let mark = self.own_mark();
        if tokio::fs::try_exists(&mark).await.unwrap_or(false) {
            return Ok(());
        }
        tokio::fs::write(&mark, b"")
            .await
            .map_err(|error| lock::at(&mark, &error))
    }

    fn own_mark(&self) -> PathBuf {
        self.path().join("info").join(OWN)
    }

    fn notes(&self) -> PathBuf {
        self.path().with_added_extension("runs")
    }

    fn note_of(&self, run: &str) -> Result<PathBuf, RepositoryError> {
        // Judges the id, which becomes the name of a file here.
        accepted_ref(run)?;
        Ok(self.notes().join(run))
    }
}

fn unless_missing(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}
