//! Receives commits from a container into a quarantine, and accepts them into the mirror.
//!
//! Only accepted commits reach the mirror: they are packed afresh, so that objects nobody asked for
//! are deleted with the quarantine.

use std::collections::HashMap;
use std::io::Cursor;
use std::ops::ControlFlow;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

use super::git::{Fed, Git};
use super::judge::{Change, Kind, MAX_LINK, changes, judge_link, or_nothing, shown};
use super::limits::{Effort, largest_allocation};
use super::lock;
use super::mirror::{Mirror, accepted_ref, wip_ref};
use super::quarantine::Quarantine;
use super::rewrite::{Link, Writer};
use super::signing::SigningKey;
use super::{CommitId, RepositoryError};

/// A result with more commits is squashed into one: nobody reviews them one by one.
const MAX_COMMITS: usize = 500;
const MAX_CHANGED_FILES: usize = 20_000;

/// New objects in quarantine. Dropping it deletes them.
#[derive(Debug)]
pub struct Incoming {
    mirror: Mirror,
    quarantine: Quarantine,
}

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

impl Mirror {
    /// Receives a pack of new objects from a container into a quarantine beside the mirror's
    /// objects, with a size limit and `fsck`. An empty stream means that there is nothing new.
    pub async fn receive(&self, mut pack: impl AsyncRead + Send + Unpin) -> Result<Incoming, RepositoryError> {
        let quarantine = Quarantine::make(self.path()).map_err(|error| lock::at(self.path(), &error))?;
        let incoming = Incoming {
            mirror: self.clone(),
            quarantine,
        };
        let what = "taking the commits back from the container";
        let broken = |error: &std::io::Error| RepositoryError::Unavailable {
            what: what.to_owned(),
            reason: format!("the stream broke off: {error}"),
        };
        let mut first = vec![0; 4096];
        // A container that sends nothing must not hold the run for ever; git's time limit begins
        // with the first byte.
        let patience = Duration::from_secs(self.config().timeout_seconds);
        let length = timeout(patience, pack.read(&mut first))
            .await
            .map_err(|_| {
                RepositoryError::Unacceptable(format!("the container sent nothing for {} seconds", patience.as_secs()))
            })?
            .map_err(|error| broken(&error))?;
        if length == 0 {
            return Ok(incoming);
        }
        first.truncate(length);
        let limit = self.config().max_incoming_bytes;
        let mut whole = Cursor::new(first).chain(pack);
        let ended = incoming
            .git(what)
            .with(Effort::Receive, self.config())
            // Each thread would build its own objects in memory concurrently.
            .args(["-c", "pack.threads=1"])
            .env("GIT_ALLOC_LIMIT", largest_allocation(self.config()).to_string())
            .args(["index-pack", "--stdin", "--fix-thin", "--strict"])
            .arg(format!("--max-input-size={limit}"))
            .stream(&mut whole, limit)
            .each(|_| ControlFlow::Continue(()))
            .await
            .map_err(|error| match error {
                // A retry, as with a forge, would let a slow container hold its run for a day.
                RepositoryError::Unavailable { reason, .. } => {
                    RepositoryError::Unacceptable(format!("the container was too slow in sending them: {reason}"))
                }
                other => other,
            })?;
        let too_much = ended.complaint.contains("exceeds maximum allowed size");
        match ended.fed {
            Fed::Broken(error) => Err(broken(&error)),
            Fed::TooMuch => Err(over(limit)),
            Fed::Whole if too_much => Err(over(limit)),
            Fed::Whole if ended.code == Some(0) => Ok(incoming),
            Fed::Whole if is_too_large(&ended.complaint) => Err(RepositoryError::Unacceptable(format!(
                "one of their objects takes more memory than a file of {} bytes needs (`max_file_bytes`)",
                self.config().max_file_bytes
            ))),
            Fed::Whole if ended.complaint.contains("No space left") => Err(RepositoryError::Unexpected {
                what: what.to_owned(),
                reason: "the disk is full".to_owned(),
            }),
            Fed::Whole => Err(RepositoryError::Unacceptable(format!(
                "git found faults: {}",
                ended.complaint.trim()
            ))),
        }
    }
}

/// True if git refused, or was refused, the memory for an object.
fn is_too_large(complaint: &str) -> bool {
    ["over limit", "out of memory", "Out of memory", "too large for"]
        .iter()
        .any(|words| complaint.contains(words))
}

fn over(limit: u64) -> RepositoryError {
    RepositoryError::Unacceptable(format!("they have more than {limit} bytes (`max_incoming_bytes`)"))
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
        let writer = Writer {
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

    fn git<'a>(&self, what: &str) -> Git<'a> {
        self.quarantine.within(self.mirror.git(what))
    }

    /// Judges all new commits. Returns them, parents first, or `None` if they must be squashed; and
    /// the number of files that differ in all.
    async fn judged(&self, acceptance: &Acceptance) -> Result<(Option<Vec<Link>>, usize), RepositoryError> {
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
    ) -> Result<Option<Vec<Link>>, RepositoryError> {
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
        let links: Option<Vec<Link>> = listed.lines().map(link).collect();
        Ok(links.filter(|links| links.len() <= MAX_COMMITS))
    }

    /// Judges the paths and modes of one step, and adds its changes to `seen`.
    async fn judge_step(
        &self,
        from: &CommitId,
        to: &CommitId,
        seen: &mut HashMap<String, Change>,
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
            Kind::File => (change.id.clone(), change),
            Kind::Link => (format!("{} {}", change.id, shown(&change.path)), change),
        }));
        if total > MAX_CHANGED_FILES || seen.len() > MAX_CHANGED_FILES {
            return Err(too_many());
        }
        Ok(total)
    }

    /// Judges the sizes of all files and the targets of all links.
    async fn judge_contents(&self, seen: &HashMap<String, Change>) -> Result<(), RepositoryError> {
        let changes: Vec<&Change> = seen.values().collect();
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
            let path = shown(&change.path);
            let size = line.strip_prefix("blob ").and_then(|size| size.parse::<u64>().ok());
            let Some(size) = size else {
                return Err(RepositoryError::Unacceptable(format!("{path}: its content is missing")));
            };
            let (limit, of_what) = match change.kind {
                Kind::File => (max_file_bytes, "`max_file_bytes`"),
                Kind::Link => (MAX_LINK, "a symbolic link's target"),
            };
            if size > limit {
                return Err(RepositoryError::Unacceptable(format!(
                    "{path} has {size} bytes, and {limit} are the limit ({of_what})"
                )));
            }
        }
        for change in changes.iter().filter(|change| change.kind == Kind::Link) {
            let target = self
                .git("reading a link")
                .args(["cat-file", "blob", &change.id])
                .bytes()
                .await?;
            judge_link(&change.path, &target)
                .map_err(|reason| RepositoryError::Unacceptable(format!("{}: {reason}", shown(&change.path))))?;
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
fn link(line: &str) -> Option<Link> {
    let mut ids = line.split(' ').map(|id| id.parse().ok());
    Some(Link {
        commit: ids.next()??,
        parents: ids.collect::<Option<_>>()?,
    })
}
