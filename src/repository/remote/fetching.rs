//! Fetches over the network. A mirror reaches only the repository that it mirrors.

use std::fs::File;
use std::path::Path;

use crate::repository::git::address::{Address, Login, Remote};
use crate::repository::git::command::Git;
use crate::repository::git::hardening::TOLERATED;
use crate::repository::git::limits::Effort;
use crate::repository::git::lock;
use crate::repository::git::progress::Told;
use crate::repository::mirror::Mirror;
use crate::repository::{Config, RepositoryError};

/// Asks a remote for its default branch, with the settings and the login that every fetch has;
/// returns whether that has a commit.
pub async fn look(config: &Config, remote: &Remote) -> Result<bool, RepositoryError> {
    let address = Address::read(&remote.url)?;
    let git = Git::new(config, format!("asking {}", address.url()));
    let git = address.reach(git, remote.login.as_ref())?;
    git.args(["ls-remote", "--quiet", "--", address.url(), "HEAD"])
        .bytes()
        .await
        .map(|told| !told.is_empty())
}

/// Returns the name of a remote's default branch, if it has one.
pub async fn default_branch(config: &Config, remote: &Remote) -> Result<Option<String>, RepositoryError> {
    let address = Address::read(&remote.url)?;
    let git = Git::new(config, format!("asking {}", address.url()));
    let git = address.reach(git, remote.login.as_ref())?;
    let told = git.args(["ls-remote", "--quiet", "--symref", "--", address.url(), "HEAD"]);
    let told = told.text().await?;
    let line = told.lines().find_map(|line| line.strip_prefix("ref: refs/heads/"));
    Ok(line.and_then(|line| Some(line.split_once('\t')?.0.to_owned())))
}

impl Mirror {
    /// Opens the mirror of `remote`, creates it if missing, and fetches all branches and tags,
    /// pruned. Fetches of one repository exclude each other (a lock file that the kernel releases).
    pub async fn fetch(config: &Config, state_dir: &Path, remote: &Remote) -> Result<Self, RepositoryError> {
        Self::fetch_telling(config, state_dir, remote, &|_| {}).await
    }

    /// Like [`Self::fetch`]; `progress` gets git's lines, such as `Receiving objects: 12% (1/8)`,
    /// many in a second.
    pub async fn fetch_telling(
        config: &Config,
        state_dir: &Path,
        remote: &Remote,
        progress: Told<'_>,
    ) -> Result<Self, RepositoryError> {
        {
            let (mirror, _) = Self::of(config, state_dir, &remote.url)?;
            let _lock = mirror.lock().await?;
            mirror.make().await?;
            mirror.mark_as_own().await?;
        }
        Self::fetch_anyones(config, state_dir, remote, progress).await
    }

    /// Fetches without recording who needs the mirror.
    pub(super) async fn fetch_anyones(
        config: &Config,
        state_dir: &Path,
        remote: &Remote,
        progress: Told<'_>,
    ) -> Result<Self, RepositoryError> {
        let (mirror, address) = Self::of(config, state_dir, &remote.url)?;
        let login = remote.login.as_ref();
        let lock = mirror.lock().await?;
        let existed = mirror.make().await?;
        mirror.clear_up().await?;
        let fetched = mirror.fetch_from(&address, login, &lock, progress).await;
        let Err(error) = fetched else {
            mirror.tidy().await;
            return Ok(mirror);
        };
        let suspect = existed && matches!(error, RepositoryError::Unexpected { .. });
        if !suspect || mirror.is_sound().await {
            return Err(error);
        }
        tracing::warn!(mirror = %mirror.path().display(), %error, "the mirror was broken and is made anew");
        tokio::fs::remove_dir_all(mirror.path())
            .await
            .map_err(|error| lock::at(mirror.path(), &error))?;
        mirror.make().await?;
        mirror.fetch_from(&address, login, &lock, progress).await?;
        Ok(mirror)
    }

    /// Fetches all branches and tags, and deletes those that are gone on the remote.
    /// `refs/coding-agent/` is left alone.
    async fn fetch_from(
        &self,
        address: &Address,
        login: Option<&Login>,
        lock: &File,
        progress: Told<'_>,
    ) -> Result<(), RepositoryError> {
        let depth = self.depth_to_fetch().await?;
        self.retried(login, || {
            let held = lock.try_clone().map_err(|error| lock::at(self.path(), &error))?;
            let git = self
                .git(format!("fetching {}", address.url()))
                .with(Effort::Transfer, self.config());
            let git = address.reach(git, login)?;
            // A git that outlives this process keeps the lock as its standard input, so nobody else
            // writes meanwhile.
            let tolerated = TOLERATED.map(|fault| format!("fetch.fsck.{fault}=ignore"));
            Ok(git
                .holding(held)
                .telling(progress)
                .args(tolerated.iter().flat_map(|setting| ["-c", setting]))
                .args([
                    "fetch",
                    "--quiet",
                    "--progress",
                    "--prune",
                    "--no-tags",
                    "--no-write-fetch-head",
                    "--no-recurse-submodules",
                ])
                .args(&depth)
                .args([
                    "--",
                    address.url(),
                    "+refs/heads/*:refs/heads/*",
                    "+refs/tags/*:refs/tags/*",
                ]))
        })
        .await
        .map(drop)
    }

    /// Returns the option that cuts the history of a new mirror, or completes that of one which was
    /// cut. Later fetches bring what is new, and cut nothing: a history that is cut anew each time
    /// would lose the way from a run's base to the branch that it began from.
    async fn depth_to_fetch(&self) -> Result<Option<String>, RepositoryError> {
        let depth = self.config().depth;
        if depth > 0 {
            return Ok((!self.has_branches().await?).then(|| format!("--depth={depth}")));
        }
        Ok((!self.cut_at().await.is_empty()).then(|| "--unshallow".to_owned()))
    }

    /// Marks the mirror as one that stays after the runs on a fork. The caller holds the lock.
    async fn mark_as_own(&self) -> Result<(), RepositoryError> {
        let mark = self.own_mark();
        if tokio::fs::try_exists(&mark).await.unwrap_or(false) {
            return Ok(());
        }
        tokio::fs::write(&mark, b"")
            .await
            .map_err(|error| lock::at(&mark, &error))
    }
}
