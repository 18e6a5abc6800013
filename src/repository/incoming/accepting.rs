//! Judges what was received, and accepts it into the mirror.
//!
//! Only accepted commits reach the mirror: they are packed afresh, so that objects nobody asked for
//! are deleted with the quarantine.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::repository::commit::rewrite::{CommitWriter, NewCommit};
use crate::repository::commit::signing::SigningKey;
use crate::repository::git::limits::Effort;
use crate::repository::incoming::judge::{
    ChangedPath, MAX_LINK, PathKind, changes, judge_link, or_nothing, quoted, shown,
};
use crate::repository::incoming::receiving::Incoming;
use crate::repository::mirror::{accepted_ref, wip_ref};
use crate::repository::{CommitId, RepositoryError};

/// A result with more commits is squashed into one: nobody reviews them one by one.
const MAX_COMMITS: usize = 500;
const MAX_CHANGED_FILES: usize = 20_000;

/// The commits that were accepted into the mirror. [`Mirror::pushable`] looks them up there before
/// a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// The last commit; equal to the base if nothing changed.
    pub head: CommitId,
    pub commits: usize,
    pub files_changed: usize,
}

/// Parameters of [`Incoming::accept`].
#[derive(Debug, Clone)]
pub struct Acceptance {
    /// The commit that the work began from; `None` in an empty repository.
    pub base: Option<CommitId>,
    pub head: CommitId,
    /// The run's id, written into each commit as the trailer `Coding-Agent-Run:` and part of the
    /// name of the ref that keeps the result.
    pub run: String,
}

impl Incoming {
    /// Judges `base..head` (paths, modes, sizes, submodules), rewrites each commit with the
    /// configured author, its own date and the trailer (the same input gives the same ids), moves
    /// the objects into the mirror and keeps the result. One commit with the whole difference takes
    /// their place if `head` does not descend from `base` or there are more than 500 commits.
    pub async fn accept(self, acceptance: &Acceptance) -> Result<Accepted, RepositoryError> {
        let name = accepted_ref(&acceptance.run)?;
        let base = acceptance.base.as_ref();
        let (links, files_changed) = self.judged(acceptance).await?;
        let git = |what: &str| self.git(what);
        let writer = CommitWriter {
            git: &git,
            config: self.mirror.config(),
            key: SigningKey::of(self.mirror.config())?,
            run: &acceptance.run,
        };
        let (head, commits) = match links {
            Some(links) => writer.chain(&links, &acceptance.head).await?,
            None => writer.squashed(base, &acceptance.head).await?,
        };
        let lock = self.mirror.lock().await?;
        self.take_in(base, &head).await?;
        self.mirror.point(&lock, &name, &head).await?;
        Ok(Accepted {
            head,
            commits,
            files_changed,
        })
    }

    /// Judges like [`Self::accept`], but keeps the commits unchanged, for a new container to
    /// continue from; they are never pushed.
    pub async fn keep_as_is(self, acceptance: &Acceptance) -> Result<CommitId, RepositoryError> {
        let name = wip_ref(&acceptance.run)?;
        self.judged(acceptance).await?;
        let lock = self.mirror.lock().await?;
        self.take_in(acceptance.base.as_ref(), &acceptance.head).await?;
        self.mirror.point(&lock, &name, &acceptance.head).await?;
        Ok(acceptance.head.clone())
    }

    /// Judges like [`Self::accept`] what another mirror has accepted and kept of a run, and keeps
    /// it unchanged.
    pub(in crate::repository) async fn restore(
        self,
        accepted: Option<&Acceptance>,
        wip: Option<&Acceptance>,
    ) -> Result<(), RepositoryError> {
        for acceptance in accepted.into_iter().chain(wip) {
            self.judged(acceptance).await?;
        }
        let lock = self.mirror.lock().await?;
        for (acceptance, name) in [(accepted, accepted_ref as fn(&str) -> _), (wip, wip_ref)] {
            let Some(Acceptance { base, head, run }) = acceptance else {
                continue;
            };
            self.take_in(base.as_ref(), head).await?;
            self.mirror.point(&lock, &name(run)?, head).await?;
        }
        Ok(())
    }

    /// Judges all new commits. Returns them, parents first, or `None` if they must be squashed; and
    /// the number of files that differ in all.
    async fn judged(&self, acceptance: &Acceptance) -> Result<(Option<Vec<NewCommit>>, usize), RepositoryError> {
        let (base, head) = (acceptance.base.as_ref(), &acceptance.head);
        self.commit_is_there(head).await?;
        let links = self.new_commits(base, head).await?;
        let mut seen = HashMap::new();
        let files_changed = self.judge_step(&or_nothing(base), head, &mut seen).await?;
        for link in links.iter().flatten() {
            // A merge is judged against its first parent, which was judged before or is on the
            // forge.
            let before = or_nothing(link.parents.first());
            self.judge_step(&before, &link.commit, &mut seen).await?;
        }
        self.judge_contents(&seen).await?;
        Ok((links, files_changed))
    }

    async fn commit_is_there(&self, commit: &CommitId) -> Result<(), RepositoryError> {
        match self
            .git("looking for the commit")
            .args(["cat-file", "-t", commit.as_str()])
            .text()
            .await
        {
            Ok(kind) if kind == "commit" => Ok(()),
            Ok(kind) => Err(RepositoryError::Unacceptable(format!(
                "{commit} is a {kind} and not a commit"
            ))),
            Err(unavailable @ RepositoryError::Unavailable { .. }) => Err(unavailable),
            Err(_) => Err(RepositoryError::Unacceptable(format!(
                "the commit {commit} is not among them"
            ))),
        }
    }

    async fn new_commits(
        &self,
        base: Option<&CommitId>,
        head: &CommitId,
    ) -> Result<Option<Vec<NewCommit>>, RepositoryError> {
        if let Some(base) = base {
            let descends = self
                .git("looking for the base")
                .args(["merge-base", "--is-ancestor", base.as_str(), head.as_str()])
                .answer()
                .await?;
            if !descends {
                return Ok(None);
            }
        }
        // Commits on one of the forge's branches stay as they are: merging them is no new work.
        let listed = self
            .git("listing the new commits")
            .args(["rev-list", "--topo-order", "--reverse", "--parents"])
            .arg(format!("--max-count={}", MAX_COMMITS + 1))
            .args([head.as_str(), "--not", "--branches"])
            .args(base.map(CommitId::as_str))
            .text()
            .await?;
        let links: Option<Vec<NewCommit>> = listed.lines().map(link).collect();
        Ok(links.filter(|links| links.len() <= MAX_COMMITS))
    }

    /// Judges the paths and modes of one step, and adds its changes to `seen`.
    async fn judge_step(
        &self,
        from: &CommitId,
        to: &CommitId,
        seen: &mut HashMap<String, ChangedPath>,
    ) -> Result<usize, RepositoryError> {
        let mut raw = Vec::new();
        let too_many = || RepositoryError::Unacceptable(format!("they change more than {MAX_CHANGED_FILES} files"));
        let ended = self
            .git("comparing commits")
            .args([
                "diff-tree",
                "-r",
                "-z",
                "--raw",
                "--no-renames",
                "--no-abbrev",
                from.as_str(),
                to.as_str(),
            ])
            .each(|chunk| {
                raw.extend_from_slice(chunk);
                if raw.len() > MAX_CHANGED_FILES * 1024 {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })
            .await?;
        if ended.was_cut {
            return Err(too_many());
        }
        if ended.code != Some(0) {
            return Err(RepositoryError::Unacceptable(format!(
                "git cannot read them: {}",
                ended.complaint.trim()
            )));
        }
        let (changes, total) = changes(&raw).map_err(RepositoryError::Unacceptable)?;
        // A link is judged relative to its path, so the same target is judged again at each path.
        seen.extend(changes.into_iter().map(|change| match change.kind {
            PathKind::File => (change.id.clone(), change),
            PathKind::Link => (format!("{} {}", change.id, shown(&change.path)), change),
        }));
        if total > MAX_CHANGED_FILES || seen.len() > MAX_CHANGED_FILES {
            return Err(too_many());
        }
        Ok(total)
    }

    /// Judges the sizes of all files and the targets of all links.
    async fn judge_contents(&self, seen: &HashMap<String, ChangedPath>) -> Result<(), RepositoryError> {
        let changes: Vec<&ChangedPath> = seen.values().collect();
        let wanted = changes
            .iter()
            .map(|change| change.id.as_str())
            .collect::<Vec<_>>()
            .join("\n");
        let sizes = self
            .git("measuring files")
            .args(["cat-file", "--batch-check=%(objecttype) %(objectsize)"])
            .input(wanted)
            .text()
            .await?;
        let max_file_bytes = self.mirror.config().max_file_bytes;
        for (change, line) in changes.iter().zip(sizes.lines()) {
            let path = quoted(&change.path);
            let size = line.strip_prefix("blob ").and_then(|size| size.parse::<u64>().ok());
            let Some(size) = size else {
                return Err(RepositoryError::Unacceptable(format!("{path}: its content is missing")));
            };
            let (limit, of_what) = match change.kind {
                PathKind::File => (max_file_bytes, "`max_file_bytes`"),
                PathKind::Link => (MAX_LINK, "a symbolic link's target"),
            };
            if size > limit {
                return Err(RepositoryError::Unacceptable(format!(
                    "{path} has {size} bytes, and {limit} are the limit ({of_what})"
                )));
            }
        }
        for change in changes.iter().filter(|change| change.kind == PathKind::Link) {
            let target = self
                .git("reading a link")
                .args(["cat-file", "blob", &change.id])
                .bytes()
                .await?;
            judge_link(&change.path, &target)
                .map_err(|reason| RepositoryError::Unacceptable(format!("{}: {reason}", quoted(&change.path))))?;
        }
        Ok(())
    }

    /// Packs what `head` adds to `base` into the mirror.
    async fn take_in(&self, base: Option<&CommitId>, head: &CommitId) -> Result<(), RepositoryError> {
        let without = base.map(|base| format!("^{base}\n")).unwrap_or_default();
        self.git("taking the commits in")
            .with(Effort::Transfer, self.mirror.config())
            .args([
                "pack-objects",
                "--revs",
                "--delta-base-offset",
                "--non-empty",
                "--quiet",
            ])
            .arg(self.mirror.path().join("objects").join("pack").join("pack"))
            .input(format!("{head}\n{without}"))
            .bytes()
            .await
            .map(drop)
    }
}

/// Parses `commit parent parent...`.
fn link(line: &str) -> Option<NewCommit> {
    let mut ids = line.split(' ').map(|id| id.parse().ok());
    Some(NewCommit {
        commit: ids.next()??,
        parents: ids.collect::<Option<_>>()?,
    })
}
