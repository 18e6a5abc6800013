//! A plain folder as a repository, for tasks without a forge: a snapshot goes in, a difference comes back.
//!
//! Nothing in the folder's own `.git` is ever run or believed: git works with our mirror's configuration and only reads the
//! folder's objects, as an alternate store. A snapshot does not change the folder in any way.

use std::collections::HashSet;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use chrono::Utc;
use uuid::Uuid;

use super::git::Git;
use super::lock;
use super::mirror::Mirror;
use super::quarantine::alternate;
use super::{CommitId, Config, RepositoryError};

/// The history a folder has already.
struct History {
    objects: PathBuf,
    head: CommitId,
}

/// A file that goes when it is dropped.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // A left-over file below the state directory harms nobody.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Mirror {
    /// Opens a mirror that is not fetched from anywhere, for a local task: a snapshot of `folder` (what git would add: `.gitignore`
    /// respected, filters off) becomes one commit on top of the folder's HEAD if it is a repository; returns that commit.
    ///
    /// An unchanged folder gives its HEAD. History that is not all there (a shallow or partial clone) is left out. Repositories
    /// inside the folder are left out and named in the log.
    pub async fn snapshot(
        config: &Config,
        state_dir: &Path,
        name: &str,
        folder: &Path,
    ) -> Result<(Self, CommitId), RepositoryError> {
        let folder = folder.canonicalize().map_err(|error| unreadable(folder, &error))?;
        let mirror = Self::local(config, state_dir, name).await?;
        let history = history(&folder);
        let index = Temporary(mirror.path().join(format!("index-{}", Uuid::now_v7())));
        let commit = mirror.record(&folder, &index.0, history.as_ref()).await?;
        if let Some(history) = &history {
            let alternates = mirror.path().join("objects").join("info").join("alternates");
            let mut line = alternate(&history.objects);
            line.push("\n");
            let written = async {
                tokio::fs::create_dir_all(alternates.with_file_name("")).await?;
                tokio::fs::write(&alternates, line.as_encoded_bytes()).await
            };
            written.await.map_err(|error| lock::at(&alternates, &error))?;
        }
        mirror.point("refs/heads/main", &commit).await?;
        Ok((mirror, commit))
    }

    /// Writes the folder as a commit.
    async fn record(
        &self,
        folder: &Path,
        index: &Path,
        history: Option<&History>,
    ) -> Result<CommitId, RepositoryError> {
        let what = format!("copying {}", folder.display());
        let git = || self.at_work_in(folder, &what).env("GIT_INDEX_FILE", index);
        // Only reading commands see the folder's objects: one that writes an object which is there already would set
        // that one's time, and so change the folder.
        let reading = || match history {
            Some(history) => git().env("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternate(&history.objects)),
            None => git(),
        };
        // A HEAD whose commit is not there (a broken or unborn branch) is no history.
        let mut head = None;
        if let Some(known) = history.map(|history| &history.head) {
            let tree = format!("{known}^{{tree}}");
            if reading().args(["cat-file", "-e", &tree]).bytes().await.is_ok() {
                reading().args(["read-tree", known.as_str()]).bytes().await?;
                head = Some(known);
            }
        }
        let paths = listed(&git, folder).await?;
        git()
            .args(["update-index", "-z", "--add", "--remove", "--replace", "--stdin"])
            .input(paths)
            .bytes()
            .await?;
        let tree = git().arg("write-tree").text().await?;
        if let Some(head) = head
            && reading()
                .args(["rev-parse", &format!("{head}^{{tree}}")])
                .text()
                .await?
                == tree
        {
            return Ok(head.clone());
        }
        let date = format!("@{} +0000", Utc::now().timestamp());
        let commit = reading()
            .args(["commit-tree", &tree, "-m", "The folder as it was when the task began"])
            .args(head.iter().flat_map(|head| ["-p", head.as_str()]))
            .env("GIT_AUTHOR_NAME", &self.config().author_name)
            .env("GIT_AUTHOR_EMAIL", &self.config().author_email)
            .env("GIT_AUTHOR_DATE", &date)
            .env("GIT_COMMITTER_NAME", &self.config().author_name)
            .env("GIT_COMMITTER_EMAIL", &self.config().author_email)
            .env("GIT_COMMITTER_DATE", &date)
            .text()
            .await?;
        commit.parse().map_err(|error| RepositoryError::Unexpected {
            what: what.clone(),
            reason: format!("{error}"),
        })
    }

    /// Applies the difference between two commits to a plain folder, all or nothing, binary files and modes included.
    ///
    /// # Errors
    /// `Moved` where the folder does not fit any more; nothing in it was changed, and the error names the file in which the
    /// difference is kept.
    pub async fn apply(&self, from: &CommitId, to: &CommitId, folder: &Path) -> Result<(), RepositoryError> {
        let folder = folder.canonicalize().map_err(|error| unreadable(folder, &error))?;
        let patch = self.path().with_extension("patch");
        let what = format!("applying the changes to {}", folder.display());
        self.git(&what)
            .args([
                "diff",
                "--binary",
                "--full-index",
                "--no-renames",
                "--no-ext-diff",
                "--no-textconv",
                "--no-color",
            ])
            .arg(format!("--output={}", patch.display()))
            .args([from.as_str(), to.as_str(), "--"])
            .bytes()
            .await?;
        let length = tokio::fs::metadata(&patch)
            .await
            .map_err(|error| lock::at(&patch, &error))?
            .len();
        if length > 0 {
            let apply = || {
                self.at_work_in(&folder, &what)
                    .args(["apply", "--binary", "--whitespace=nowarn"])
            };
            if let Err(error) = apply().args(["--check", "--"]).arg(&patch).bytes().await {
                return Err(RepositoryError::Moved {
                    what,
                    reason: format!(
                        "{error}; nothing in the folder was changed. The changes are kept in {}: apply them by hand with \
                         `git apply --3way` or `patch -p1`",
                        patch.display()
                    ),
                });
            }
            if let Err(error) = apply().arg("--").arg(&patch).bytes().await {
                return Err(RepositoryError::Unexpected {
                    what,
                    reason: format!(
                        "writing broke off half-way ({error}); all changes are kept in {}",
                        patch.display()
                    ),
                });
            }
        }
        tokio::fs::remove_file(&patch)
            .await
            .map_err(|error| lock::at(&patch, &error))
    }

    /// Removes a local task's mirror; a kept patch stays.
    pub async fn discard(self) -> Result<(), RepositoryError> {
        let removed = async {
            tokio::fs::remove_dir_all(self.path()).await?;
            tokio::fs::remove_file(self.path().with_added_extension("lock")).await
        };
        removed.await.map_err(|error| lock::at(self.path(), &error))
    }

    /// Prepares a git command that sees `folder` as its work tree, with nothing of the folder's own configuration.
    fn at_work_in<'a>(&self, folder: &Path, what: &str) -> Git<'a> {
        self.git(what)
            .args(["-c", "core.bare=false"])
            .env("GIT_WORK_TREE", folder)
            .current_directory(folder)
    }
}

/// Lists what git would add, NUL after each: tracked files and those that are not ignored.
///
/// `git add` itself is not used: where it meets another repository it starts git in there, with that one's configuration.
async fn listed<'a>(git: &impl Fn() -> Git<'a>, folder: &Path) -> Result<Vec<u8>, RepositoryError> {
    let staged = git().args(["ls-files", "-z", "--stage"]).bytes().await?;
    let submodules: HashSet<&[u8]> = staged
        .split(|byte| *byte == 0)
        .filter(|line| line.starts_with(b"160000 "))
        .filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1))
        .collect();
    let exclude = git_folder(folder).map(|git_folder| common_folder(&git_folder).join("info").join("exclude"));
    let exclude = exclude
        .filter(|path| path.is_file())
        .map(|path| format!("--exclude-from={}", path.display()));
    let mut found = Vec::new();
    let ended = git()
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .args(exclude)
        .each(|chunk| {
            found.extend_from_slice(chunk);
            ControlFlow::Continue(())
        })
        .await?;
    // Git only warns of a folder it may not read, and goes on without it.
    if ended.code != Some(0) || ended.complaint.contains("could not open directory") {
        return Err(RepositoryError::Unexpected {
            what: format!("listing {}", folder.display()),
            reason: format!(
                "{}; let this user read it, or name it in .gitignore",
                ended.complaint.trim()
            ),
        });
    }
    let mut paths = Vec::with_capacity(found.len());
    for path in found.split(|byte| *byte == 0).filter(|path| !path.is_empty()) {
        if path.ends_with(b"/") {
            tracing::warn!(path = %String::from_utf8_lossy(path), "a repository inside the folder was left out");
        } else if !submodules.contains(path) {
            paths.extend_from_slice(path);
            paths.push(0);
        }
    }
    Ok(paths)
}

/// Reads where the folder's HEAD points to, without git: git would read the folder's configuration first.
fn history(folder: &Path) -> Option<History> {
    let git_folder = git_folder(folder)?;
    let common = common_folder(&git_folder);
    let objects = common.join("objects");
    let is_partial = common.join("shallow").exists()
        || std::fs::read_dir(objects.join("pack"))
            .into_iter()
            .flatten()
            .flatten()
            .any(|file| file.path().extension().is_some_and(|extension| extension == "promisor"));
    if is_partial {
        tracing::warn!(folder = %folder.display(), "the history is not all there and was left out");
        return None;
    }
    let head = read(&git_folder.join("HEAD"))?;
    let head = match head.strip_prefix("ref: ") {
        None => head.parse().ok()?,
        Some(name) => reference(&common, name)?,
    };
    Some(History { objects, head })
}

/// Returns the folder's `.git`, followed where it is a file (a work tree or submodule).
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let path = folder.join(".git");
    if path.is_dir() {
        return Some(path);
    }
    let elsewhere = read(&path)?;
    Some(folder.join(elsewhere.strip_prefix("gitdir: ")?))
}

/// Returns the folder that the work trees of one repository share.
fn common_folder(git_folder: &Path) -> PathBuf {
    match read(&git_folder.join("commondir")) {
        Some(common) => git_folder.join(common),
        None => git_folder.to_owned(),
    }
}

fn reference(common: &Path, name: &str) -> Option<CommitId> {
    let is_plain = name.starts_with("refs/") && !name.split('/').any(|part| part.is_empty() || part.starts_with('.'));
    is_plain.then_some(())?;
    if let Some(loose) = read(&common.join(name)) {
        return loose.parse().ok();
    }
    let packed = std::fs::read_to_string(common.join("packed-refs")).ok()?;
    packed.lines().find_map(|line| {
        let (id, found) = line.split_once(' ')?;
        (found == name).then(|| id.parse().ok())?
    })
}

fn read(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim_end().to_owned())
}

fn unreadable(folder: &Path, error: &io::Error) -> RepositoryError {
    RepositoryError::Unexpected {
        what: format!("the folder {}", folder.display()),
        reason: format!("{error}; give an existing folder that this user may read"),
    }
}
