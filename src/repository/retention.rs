//! Deletes the commits of forgotten runs from mirrors, and mirrors that nobody has used for long.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use crate::repository::git::address::file_name;
use crate::repository::git::limits::Effort;
use crate::repository::git::lock;
use crate::repository::mirror::Mirror;
use crate::repository::missing::unless_missing;
use crate::repository::{Config, RepositoryError};

/// Maximum depth of mirrors: host, then groups within groups.
const DEEPEST: usize = 24;

/// The age at which unreferenced objects are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prune {
    /// All are removed at once, because nobody is at work.
    Now,
    /// Only those older than an hour are removed, because what a run is writing at this moment is
    /// not referenced yet.
    Old,
}

impl Mirror {
    /// Returns all mirrors of remote repositories below a state folder.
    pub fn all(config: &Config, state_dir: &Path) -> Vec<Self> {
        let mut found = Vec::new();
        let root = Self::at(config, state_dir, Path::new("")).path().clone();
        find(&root, DEEPEST, &mut found);
        let local = root.join("local");
        // One that was only half made or half removed is none, and must not stand in the way of the
        // others.
        found.retain(|path| !path.starts_with(&local) && path.join("info").join("attributes").is_file());
        found.sort();
        let places = found.iter().filter_map(|path| path.strip_prefix(&root).ok());
        places.map(|place| Self::at(config, state_dir, place)).collect()
    }

    /// Returns the runs of which the mirror keeps something.
    pub async fn kept_runs(&self) -> Result<Vec<String>, RepositoryError> {
        let listed = self
            .git("listing what is kept of runs")
            .args(["for-each-ref", "--format=%(refname)", "refs/coding-agent/"])
            .text()
            .await?;
        let mut runs: Vec<String> = listed
            .lines()
            .filter_map(|name| name.strip_prefix("refs/coding-agent/")?.split('/').next())
            .map(str::to_owned)
            .collect();
        runs.dedup();
        Ok(runs)
    }

    /// Tells whether this is the mirror of a repository with this name on its forge.
    pub fn is_called(&self, name: &str) -> bool {
        let parts: Vec<String> = name.split('/').map(|part| file_name(part).to_lowercase()).collect();
        let place = self.path().with_extension("").to_string_lossy().to_lowercase();
        Path::new(&place).ends_with(parts.join("/"))
    }

    /// Deletes what the mirror keeps of these runs, and its objects if there was something, or if
    /// `is_own` says that the runs worked here. Returns the number of runs of which there was
    /// something. A mark in the mirror lets another call complete what a crash interrupts.
    pub async fn forget_all(&self, runs: &[String], is_own: bool, prune: Prune) -> Result<usize, RepositoryError> {
        let mark = self.path().join("forgetting");
        let kept: Vec<String> = self
            .kept_runs()
            .await?
            .into_iter()
            .filter(|run| runs.contains(run))
            .collect();
        for run in runs {
            self.unpin_contents(run).await?;
        }
        if kept.is_empty() && !is_own && !mark.exists() {
            return Ok(0);
        }
        let marked = tokio::fs::write(&mark, "").await;
        marked.map_err(|error| lock::at(&mark, &error))?;
        for run in &kept {
            self.forget(run).await?;
        }
        self.prune(prune).await?;
        if prune == Prune::Now {
            let removed = tokio::fs::remove_file(&mark).await;
            removed.map_err(|error| lock::at(&mark, &error))?;
        }
        Ok(kept.len())
    }

    /// Removes unreferenced objects, out of packs as well.
    async fn prune(&self, prune: Prune) -> Result<(), RepositoryError> {
        let _lock = self.lock().await?;
        let expire = match prune {
            Prune::Now => "now",
            Prune::Old => "1.hour.ago",
        };
        self.git("removing what nothing refers to")
            .with(Effort::Transfer, self.config())
            .args(["-c", "gc.autoDetach=false", "gc", "--quiet"])
            .arg(format!("--prune={expire}"))
            .bytes()
            .await
            .map(drop)
    }

    /// Removes the mirror if nobody has used it for this time. Returns whether it did.
    pub async fn remove_unused(&self, unused: Duration) -> Result<bool, RepositoryError> {
        let lock = self.lock_without_use().await?;
        let used = lock.metadata().and_then(|metadata| metadata.modified());
        let used = used.map_err(|error| lock::at(self.path(), &error))?;
        let is_unused = SystemTime::now().duration_since(used).is_ok_and(|since| since > unused);
        if !is_unused {
            return Ok(false);
        }
        unless_missing(tokio::fs::remove_dir_all(self.path()).await).map_err(|error| lock::at(self.path(), &error))?;
        Ok(true)
    }
}

fn find(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if path.extension().is_some_and(|extension| extension == "git") {
            found.push(path);
        } else if depth > 0 {
            find(&path, depth - 1, found);
        }
    }
}
