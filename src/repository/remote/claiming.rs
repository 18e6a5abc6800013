//! Claims: refs beside the branches of a repository, each of which one installation at a time may
//! set.
//!
//! The forge compares and sets: a push names the commit at which it expects the ref, and is refused
//! where another was faster. A result is pushed together with a renewal of its claim, as one change
//! ([`Fence`]): an installation whose claim is gone can push nothing any more.

use std::ops::ControlFlow;
use std::path::Path;

use chrono::Utc;
use uuid::Uuid;

use crate::repository::commit::identity::committed;
use crate::repository::git::address::{Login, Remote};
use crate::repository::git::hardening::PUSH;
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, Config, RepositoryError};

/// The longest text of a claim that is read.
const LONGEST_TEXT: usize = 4096;
/// How often a ref is read again that moves meanwhile.
const MOST_READS: usize = 3;

/// The claims in one repository of a forge.
#[derive(Debug, Clone)]
pub struct Claims {
    /// Holds the commits of claims and nothing else. In the repository's own mirror they would wait
    /// for a fetch to end, which may take minutes, and the claim run out.
    mirror: Mirror,
    login: Option<Login>,
}

/// A claim as it stands on the forge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundClaim {
    pub commit: CommitId,
    /// Its text, cut; empty if the ref points to something else than a commit.
    pub text: String,
}

/// The renewal of a claim that goes with a push.
#[derive(Debug, Clone)]
pub struct Fence {
    /// The claim's ref.
    pub(super) name: String,
    /// Where it has to be.
    pub(super) from: CommitId,
    pub(super) to: CommitId,
}

impl Claims {
    /// Prepares to read and set claims in the repository at `remote`, without contacting it.
    pub async fn of(config: &Config, state_dir: &Path, remote: Remote) -> Result<Self, RepositoryError> {
        let mirror = Mirror::of_claims(config, state_dir, &remote.url)?;
        let is_new = {
            let _lock = mirror.lock().await?;
            !mirror.make().await?
        };
        let claims = Self {
            mirror,
            login: remote.login,
        };
        if !is_new {
            claims.tidy().await;
        }
        Ok(claims)
    }

    /// Returns what a ref points to; `None` if there is no such ref.
    pub async fn read(&self, name: &str) -> Result<Option<FoundClaim>, RepositoryError> {
        let mut found = self.commit_at(name).await?;
        for _ in 0..MOST_READS {
            let Some(commit) = found else { return Ok(None) };
            if let Some(text) = self.text_of(&commit).await {
                return Ok(Some(FoundClaim { commit, text }));
            }
            match self.fetch(name).await {
                Ok(()) | Err(RepositoryError::Unexpected { .. }) => {}
                Err(error) => return Err(error),
            }
            if let Some(text) = self.text_of(&commit).await {
                return Ok(Some(FoundClaim { commit, text }));
            }
            found = self.commit_at(name).await?;
            if found.as_ref() == Some(&commit) {
                // Git refuses it, or it is no commit.
                let text = String::new();
                return Ok(Some(FoundClaim { commit, text }));
            }
        }
        Err(RepositoryError::Unavailable {
            what: format!("reading {name}"),
            reason: "it changed each time".to_owned(),
        })
    }

    /// Points a ref to a new commit with this text if it is still at `from`, or does not exist
    /// where that is `None`. Returns the commit, or `None` if the ref is elsewhere.
    pub async fn set(
        &self,
        name: &str,
        from: Option<&CommitId>,
        text: &str,
    ) -> Result<Option<CommitId>, RepositoryError> {
        let to = self.mirror.write_claim(text).await?;
        // A push whose answer was lost is refused when it is repeated, and so is one that met
        // another; what the ref is at tells them apart, in any forge's words.
        let refusal = match self.mirror.push_claim(self.login.as_ref(), name, from, Some(&to)).await {
            Ok(()) => return Ok(Some(to)),
            Err(error @ RepositoryError::Unavailable { .. }) => return Err(error),
            Err(error) => error,
        };
        let there = self.commit_at(name).await?;
        if there.as_ref() == Some(&to) {
            return Ok(Some(to));
        }
        if there.as_ref() != from {
            return Ok(None);
        }
        match refusal {
            RepositoryError::Moved { what, reason } => Err(RepositoryError::Unavailable { what, reason }),
            refusal => Err(refusal),
        }
    }

    /// Fails unless the forge takes claims in this repository. One is set and taken away again.
    pub async fn try_out(&self) -> Result<(), RepositoryError> {
        let name = format!("refs/coding-agent/claims/try-{}", Uuid::new_v4().simple());
        let moved = || RepositoryError::Unexpected {
            what: format!("setting {name}"),
            reason: "it was not where it was set".to_owned(),
        };
        let set = self.set(&name, None, "Set by `coding-agent doctor`.\n").await?;
        let set = set.ok_or_else(moved)?;
        self.mirror
            .push_claim(self.login.as_ref(), &name, Some(&set), None)
            .await
    }

    async fn commit_at(&self, name: &str) -> Result<Option<CommitId>, RepositoryError> {
        let address = self.mirror.own_address()?;
        let list = || {
            let git = self.mirror.git(format!("looking for claims in {}", address.url()));
            Ok(address
                .reach(git, self.login.as_ref())?
                .args(["ls-remote", "--quiet", "--", address.url(), name]))
        };
        let listed = self.mirror.retried(self.login.as_ref(), list).await?;
        let listed = String::from_utf8_lossy(&listed).into_owned();
        let found = listed.lines().find_map(|line| {
            let (id, found) = line.split_once('\t')?;
            (found == name).then(|| id.parse())
        });
        found.transpose().map_err(|error| RepositoryError::Unexpected {
            what: format!("reading {name}"),
            reason: format!("{error}"),
        })
    }

    /// Returns the message of a commit, if it is here and a commit.
    async fn text_of(&self, commit: &CommitId) -> Option<String> {
        let mut raw = Vec::new();
        let read = self.mirror.git("reading a claim");
        let ended = read
            .args(["cat-file", "commit", commit.as_str()])
            .each(|chunk| {
                raw.extend_from_slice(chunk);
                if raw.len() > LONGEST_TEXT {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })
            .await;
        let is_read = ended.is_ok_and(|ended| ended.was_cut || ended.code == Some(0));
        raw.truncate(LONGEST_TEXT);
        let raw = String::from_utf8_lossy(&raw);
        let text = raw.split_once("\n\n").map_or("", |(_, text)| text);
        is_read.then(|| text.to_owned())
    }

    async fn fetch(&self, name: &str) -> Result<(), RepositoryError> {
        let address = self.mirror.own_address()?;
        let fetched = self.mirror.retried(self.login.as_ref(), || {
            let git = self.mirror.git(format!("fetching a claim of {}", address.url()));
            Ok(address
                .reach(git, self.login.as_ref())?
                // One commit and an empty tree, for which a pack each would be a lot.
                .args(["-c", "fetch.unpackLimit=100"])
                .args([
                    "fetch",
                    "--quiet",
                    "--no-tags",
                    "--no-write-fetch-head",
                    "--no-recurse-submodules",
                ])
                .args(["--", address.url(), name]))
        });
        fetched.await.map(drop)
    }

    /// Removes the commits of claims that are over, and what a ref that is no claim brought along.
    /// They would be fetched again, so a failure does no harm.
    async fn tidy(&self) {
        let packs = self.mirror.path().join("objects").join("pack");
        if let Ok(mut listed) = tokio::fs::read_dir(&packs).await {
            while let Ok(Some(entry)) = listed.next_entry().await {
                let _ = tokio::fs::remove_file(entry.path()).await;
            }
        }
        // The folder's time says when that was done last.
        let mark = self.mirror.path().join("info").join("pruned");
        let age = tokio::fs::metadata(&mark).await.and_then(|mark| mark.modified());
        if age.is_ok_and(|at| at.elapsed().is_ok_and(|age| age.as_secs() < DAY)) {
            return;
        }
        let prune = self.mirror.git("tidying claims").args(["prune", "--expire=1.day.ago"]);
        if prune.bytes().await.is_ok() {
            let _ = tokio::fs::write(&mark, b"").await;
        }
    }
}

const DAY: u64 = 24 * 60 * 60;

impl Fence {
    /// Prepares a renewal of the claim `name`, which is at `from`, for a push from `mirror`.
    pub(super) async fn in_mirror(
        mirror: &Mirror,
        name: &str,
        from: &CommitId,
        text: &str,
    ) -> Result<Self, RepositoryError> {
        Ok(Self {
            name: name.to_owned(),
            from: from.clone(),
            to: mirror.write_claim(text).await?,
        })
    }
}

impl Mirror {
    /// Returns the repository on disk that holds the claims in the repository at `url`.
    fn of_claims(config: &Config, state_dir: &Path, url: &str) -> Result<Self, RepositoryError> {
        Self::of(config, &state_dir.join("claims"), url).map(|(mirror, _)| mirror)
    }

    /// Writes the commit of a claim. It has an empty tree and no parent: nothing but its text.
    async fn write_claim(&self, text: &str) -> Result<CommitId, RepositoryError> {
        // The forge needs the tree as well, and git knows this one without having it.
        self.git("writing a claim")
            .arg("mktree")
            .input(Vec::new())
            .text()
            .await?;
        let date = format!("@{} +0000", Utc::now().timestamp());
        let git = self
            .git("writing a claim")
            .args(["commit-tree", CommitId::nothing().as_str()])
            .input(text);
        committed(git, self.config(), Some(&date)).await
    }

    /// Sets the ref of a claim that is at `from`, or deletes it. Without `from` it must not exist.
    pub(super) async fn push_claim(
        &self,
        login: Option<&Login>,
        name: &str,
        from: Option<&CommitId>,
        to: Option<&CommitId>,
    ) -> Result<(), RepositoryError> {
        let address = self.own_address()?;
        let expected = from.map_or("", CommitId::as_str);
        let lease = format!("--force-with-lease={name}:{expected}");
        let what = format!("{}:{name}", to.map_or("", CommitId::as_str));
        let push = || {
            let git = self.git(format!("claiming an item in {}", address.url()));
            let git = address.reach(git, login)?;
            Ok(git.args(PUSH).args([&lease, "--", address.url(), &what]))
        };
        self.retried(login, push).await.map(drop)
    }
}
