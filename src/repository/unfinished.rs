//! The unfinished work of a run, for a mirror that does not have it: of another machine, or made
//! anew.

use std::io;

use serde::{Deserialize, Serialize};
use tokio::io::AsyncRead;

use crate::repository::git::lock;
use crate::repository::incoming::accepting::Acceptance;
use crate::repository::mirror::{Mirror, accepted_ref, best_ref, wip_ref};
use crate::repository::{CommitId, RepositoryError};

/// The commits that a mirror keeps of an unfinished run, and which mirror that is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnfinishedWork {
    /// The last accepted result.
    pub accepted: Option<CommitId>,
    /// The work in progress, as it came out of the container.
    pub wip: Option<CommitId>,
    /// The id of the mirror. One mirror knows of its own runs at least what it gave away.
    pub mirror: String,
}

impl UnfinishedWork {
    fn tips(&self) -> Vec<CommitId> {
        self.accepted.iter().chain(&self.wip).cloned().collect()
    }

    /// Returns what stands in a bundle of git before the pack of [`Mirror::pack_unfinished`]. Both
    /// together are a file from which `git fetch` takes the work of `run`, under the names that a
    /// mirror has for it.
    pub fn bundle_head(&self, run: &str, base: &CommitId) -> Result<String, RepositoryError> {
        let mut head = format!("# v2 git bundle\n-{base}\n");
        for (commit, name) in [(&self.accepted, accepted_ref(run)?), (&self.wip, wip_ref(run)?)] {
            if let Some(commit) = commit {
                head.extend([commit.as_str(), " ", name.as_str(), "\n"]);
            }
        }
        head.push('\n');
        Ok(head)
    }

    /// Tells whether both name the same commits, whichever mirror they are in.
    pub fn has_commits_of(&self, other: &Self) -> bool {
        (&self.accepted, &self.wip) == (&other.accepted, &other.wip)
    }
}

impl Mirror {
    /// Returns the work that the mirror keeps of a run; `None` if there is none.
    pub async fn unfinished(&self, run: &str) -> Result<Option<UnfinishedWork>, RepositoryError> {
        let (accepted, wip) = (self.kept(run).await?, self.kept_wip(run).await?);
        if accepted.is_none() && wip.is_none() {
            return Ok(None);
        }
        let mirror = self.id().await?;
        Ok(Some(UnfinishedWork { accepted, wip, mirror }))
    }

    /// Returns a reader of a pack with the work, for [`Self::restore`]. Both mirrors must have
    /// `base`.
    pub async fn pack_unfinished(
        &self,
        base: &CommitId,
        work: &UnfinishedWork,
    ) -> Result<Box<dyn AsyncRead + Send + Unpin>, RepositoryError> {
        self.pack_without(&work.tips(), std::slice::from_ref(base)).await
    }

    /// Takes in the work of `run` from a pack, with the checks that commits from a container get.
    pub async fn restore(
        &self,
        run: &str,
        base: &CommitId,
        work: &UnfinishedWork,
        pack: impl AsyncRead + Send + Unpin,
    ) -> Result<(), RepositoryError> {
        let acceptance = |head: &CommitId| Acceptance {
            base: Some(base.clone()),
            head: head.clone(),
            run: run.to_owned(),
        };
        let incoming = self.receive(pack).await?;
        let (accepted, wip) = (
            work.accepted.as_ref().map(acceptance),
            work.wip.as_ref().map(acceptance),
        );
        incoming.restore(accepted.as_ref(), wip.as_ref()).await
    }

    /// Keeps an accepted result of `run`, whatever is accepted after it.
    pub async fn keep_best(&self, run: &str, head: &CommitId) -> Result<(), RepositoryError> {
        let lock = self.lock().await?;
        self.point(&lock, &best_ref(run)?, head).await
    }

    /// Makes the result `head` that was kept the run's work in progress, so that a new container
    /// goes on with it. Returns false if this mirror has not kept it.
    pub async fn take_best(&self, run: &str, head: &CommitId) -> Result<bool, RepositoryError> {
        if self.commit_at(&best_ref(run)?).await?.as_ref() != Some(head) {
            return Ok(false);
        }
        let lock = self.lock().await?;
        self.point(&lock, &wip_ref(run)?, head).await?;
        Ok(true)
    }

    /// Takes up the work of `run` from a commit that a branch of the forge brought. Returns false
    /// if no branch has it, or `base` is not below it.
    pub async fn adopt(&self, run: &str, base: &CommitId, head: &CommitId) -> Result<bool, RepositoryError> {
        let lock = self.lock().await?;
        let is_there = self
            .git(format!("looking for {head}"))
            .args(["cat-file", "-e", head.as_str()])
            .answer()
            .await?;
        if !is_there {
            return Ok(false);
        }
        let is_based = self
            .git(format!("looking below {head}"))
            .args(["merge-base", "--is-ancestor", base.as_str(), head.as_str()])
            .answer()
            .await?;
        let branches = self
            .git(format!("looking for a branch with {head}"))
            .args(["for-each-ref", "--count=1", "--contains", head.as_str(), "refs/heads/"])
            .text()
            .await?;
        if !is_based || branches.trim().is_empty() {
            return Ok(false);
        }
        for name in [accepted_ref(run)?, wip_ref(run)?] {
            self.point(&lock, &name, head).await?;
        }
        Ok(true)
    }

    /// Returns the name that distinguishes this mirror from others of the same repository; the
    /// first call creates it.
    async fn id(&self) -> Result<String, RepositoryError> {
        let file = self.path().join("info").join("id");
        let _lock = self.lock().await?;
        match tokio::fs::read_to_string(&file).await {
            Ok(id) if !id.is_empty() => return Ok(id),
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(lock::at(&file, &error)),
            Ok(_) | Err(_) => {}
        }
        let id = uuid::Uuid::now_v7().to_string();
        let written = tokio::fs::write(&file, &id).await;
        written.map_err(|error| lock::at(&file, &error))?;
        Ok(id)
    }
}
