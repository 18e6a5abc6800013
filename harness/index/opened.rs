//! The index of a repository that lies elsewhere: a mirror of its own that borrows its objects.

use std::path::Path;

use anyhow::Context;
use coding_agent::index::{Config, Index};
use coding_agent::repository::mirror::Mirror;
use coding_agent::repository::{self, CommitId};
use tempfile::TempDir;

pub struct Opened {
    pub index: Index,
    pub mirror: Mirror,
    _state: TempDir,
}

impl Opened {
    pub async fn of(repository: &Path) -> anyhow::Result<Self> {
        let state = tempfile::tempdir()?;
        let mirror = Mirror::local(&repository::Config::default(), state.path(), "bench").await?;
        let info = mirror.path().join("objects").join("info");
        std::fs::create_dir_all(&info)?;
        let objects = repository.canonicalize()?.join("objects");
        std::fs::write(info.join("alternates"), format!("{}\n", objects.display()))?;
        Ok(Self {
            index: Index::open(&Config::default(), &mirror).await?,
            mirror,
            _state: state,
        })
    }

    /// Closes the index, opens it again, and returns the size that it had.
    pub async fn reopened(mut self) -> anyhow::Result<(Self, u64)> {
        let file = Index::file(&self.mirror);
        self.index.clone().close().await;
        let bytes = std::fs::metadata(file)?.len();
        self.index = Index::open(&Config::default(), &self.mirror).await?;
        Ok((self, bytes))
    }
}

/// Runs git on a repository and returns what it prints.
pub fn git(repository: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let done = std::process::Command::new("git")
        .args(["-c", "safe.directory=*", "--git-dir"])
        .arg(repository)
        .args(arguments)
        .output()
        .context("git cannot be started")?;
    anyhow::ensure!(
        done.status.success(),
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&done.stderr)
    );
    Ok(String::from_utf8_lossy(&done.stdout).into_owned())
}

/// Returns the newest commits of a repository, newest first.
pub fn newest(repository: &Path, count: usize) -> anyhow::Result<Vec<CommitId>> {
    let listed = git(
        repository,
        &["rev-list", "--first-parent", &format!("--max-count={count}"), "--all"],
    )?;
    listed.lines().map(|line| line.parse().context("a commit")).collect()
}
