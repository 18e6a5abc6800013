//! Tasks on a plain folder without a forge: takes a snapshot of it and applies the difference back.
//!
//! Nothing in the folder's own `.git` is run or trusted: git works with our mirror's configuration
//! and only reads the folder's objects, as an alternate store. A snapshot does not change the
//! folder in any way.

use std::io;
use std::path::{Path, PathBuf};

use chrono::Utc;
use tokio::process::Command;
use uuid::Uuid;

use crate::private;
use crate::repository::commit::identity::committed;
use crate::repository::git::address::file_name;
use crate::repository::git::command::Git;
use crate::repository::git::limits::Effort;
use crate::repository::git::lock;
use crate::repository::incoming::quarantine::alternate;
use crate::repository::local::listing::listed;
use crate::repository::local::surroundings::{History, history, private_excludes, top_above};
use crate::repository::mirror::Mirror;
use crate::repository::missing::unless_missing;
use crate::repository::{CommitId, Config, RepositoryError};

/// A file that is removed on drop.
struct TemporaryFile(PathBuf);

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A left-over file below the state directory does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Mirror {
    /// Opens a mirror without a remote for a local task, and commits a snapshot of `folder` (what
    /// git would add: `.gitignore` respected, filters off) on top of the folder's HEAD if it is a
    /// repository; returns that commit.
    ///
    /// Returns HEAD for an unchanged folder. Incomplete history (a shallow or partial clone) is
    /// omitted; nested repositories are omitted and logged. Of a folder inside a repository only
    /// that folder is taken, without history, and still without what the repository ignores.
    pub async fn snapshot(
        config: &Config,
        state_dir: &Path,
        name: &str,
        folder: &Path,
    ) -> Result<(Self, CommitId), RepositoryError> {
        let folder = folder.canonicalize().map_err(|error| unreadable(folder, &error))?;
        let mirror = Self::local(config, state_dir, name).await?;
        let history = history(&folder);
        let index = TemporaryFile(mirror.path().join(format!("index-{}", Uuid::now_v7())));
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
        let lock = mirror.lock().await?;
        mirror.point(&lock, "refs/heads/main", &commit).await?;
        Ok((mirror, commit))
    }

    /// Opens a mirror without a remote, for a local task.
    pub async fn local(config: &Config, state_dir: &Path, name: &str) -> Result<Self, RepositoryError> {
        let mirror = Self::at(config, state_dir, &Self::local_place(name));
        let _lock = mirror.lock().await?;
        mirror.make().await?;
        mirror.clear_up().await?;
        Ok(mirror)
    }

    /// Commits the folder's files.
    async fn record(
        &self,
        folder: &Path,
        index: &Path,
        history: Option<&History>,
    ) -> Result<CommitId, RepositoryError> {
        let what = format!("copying {}", folder.display());
        let git = || self.at_work_in(folder, &what).env("GIT_INDEX_FILE", index);
        // Only reading commands see the folder's objects: writing an object that exists there would
        // update its time, and so change the folder.
        let reading = || match history {
            Some(history) => git().env("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternate(&history.objects)),
            None => git(),
        };
        let head = match history {
            Some(history) => self.read_head(&reading, history).await?,
            None => None,
        };
        let paths = match top_above(folder) {
            Some(top) => self.listed_within(&top, folder).await?,
            None => None,
        };
        let paths = match paths {
            Some(paths) => paths,
            None => listed(&git, folder, Path::new("")).await?,
        };
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
        let command = reading()
            .args(["commit-tree", &tree, "-m", "The folder as it was when the task began"])
            .args(head.iter().flat_map(|head| ["-p", head.as_str()]));
        committed(command, self.config(), Some(&date)).await
    }

    /// Fills the index of `reading` from the folder's HEAD and returns HEAD. A HEAD without a
    /// commit (a broken or unborn branch) counts as no history.
    async fn read_head<'a, 'h>(
        &self,
        reading: &impl Fn() -> Git<'a>,
        history: &'h History,
    ) -> Result<Option<&'h CommitId>, RepositoryError> {
        let tree = format!("{}^{{tree}}", history.head);
        if reading().args(["cat-file", "-e", &tree]).bytes().await.is_err() {
            return Ok(None);
        }
        reading().args(["read-tree", history.head.as_str()]).bytes().await?;
        Ok(Some(&history.head))
    }

    /// Lists the files of a folder inside the repository at `top`. `None` if that repository
    /// ignores the folder, which is then independent (say, a project in a versioned home
    /// directory).
    async fn listed_within(&self, top: &Path, folder: &Path) -> Result<Option<Vec<u8>>, RepositoryError> {
        let Ok(inside) = folder.strip_prefix(top) else {
            return Ok(None);
        };
        let what = format!("listing {}", folder.display());
        let index = TemporaryFile(self.path().join(format!("index-{}", Uuid::now_v7())));
        let git = || self.at_work_in(top, &what).env("GIT_INDEX_FILE", &index.0);
        let excludes = private_excludes(top).map(|path| format!("core.excludesFile={}", path.display()));
        let excludes = excludes.iter().flat_map(|setting| ["-c", setting]);
        // `check-ignore` always takes paths literally and rejects this setting; "./" keeps a
        // leading ':' from being special.
        let asked = git()
            .env("GIT_LITERAL_PATHSPECS", "0")
            .args(excludes)
            .args(["check-ignore", "--quiet", "--"])
            .arg(Path::new(".").join(inside));
        if asked.answer().await? {
            return Ok(None);
        }
        if let Some(history) = history(top) {
            let reading = || git().env("GIT_ALTERNATE_OBJECT_DIRECTORIES", alternate(&history.objects));
            self.read_head(&reading, &history).await?;
        }
        listed(&git, top, inside).await.map(Some)
    }

    /// Applies the difference between two commits to a plain folder, binary files and modes
    /// included. It is checked as a whole before anything is written.
    ///
    /// # Errors
    /// `Moved` if the difference does not apply; nothing in the folder was changed. This error and
    /// that of a write that broke off name the file that keeps the difference.
    pub async fn apply(&self, from: &CommitId, to: &CommitId, folder: &Path) -> Result<(), RepositoryError> {
        let folder = folder.canonicalize().map_err(|error| unreadable(folder, &error))?;
        let what = format!("applying the changes to {}", folder.display());
        let (patch, length) = self.patch(from, to).await?;
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
            if let Err(error) = apply()
                .arg("--")
                .arg(&patch)
                .started_by(with_mask_of_user)
                .bytes()
                .await
            {
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

    /// Writes the exact difference between two commits (binary files and modes included) as a patch
    /// beside the mirror, and returns its path and length.
    pub async fn patch(&self, from: &CommitId, to: &CommitId) -> Result<(PathBuf, u64), RepositoryError> {
        let patch = self.path().with_extension("patch");
        self.git(format!("comparing {from} with {to}"))
            .with(Effort::Transfer, self.config())
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
        let written = tokio::fs::metadata(&patch).await;
        let length = written.map_err(|error| lock::at(&patch, &error))?.len();
        Ok((patch, length))
    }

    /// Removes a local task's mirror; a kept patch stays.
    pub async fn discard(self) -> Result<(), RepositoryError> {
        for removed in [
            tokio::fs::remove_dir_all(self.path()).await,
            tokio::fs::remove_file(self.path().with_added_extension("lock")).await,
        ] {
            unless_missing(removed).map_err(|error| lock::at(self.path(), &error))?;
        }
        Ok(())
    }

    /// Removes the mirror of the local task `name`, if there is one.
    pub async fn discard_local(config: &Config, state_dir: &Path, name: &str) -> Result<(), RepositoryError> {
        Self::at(config, state_dir, &Self::local_place(name)).discard().await
    }

    /// Returns the mirror of the copy of a folder, which need not exist.
    pub fn of_folder(config: &Config, state_dir: &Path, name: &str) -> Self {
        Self::at(config, state_dir, &Self::local_place(name))
    }

    /// Returns the names of the local tasks that have a mirror.
    pub fn locals(state_dir: &Path) -> Vec<String> {
        let folder = state_dir.join("mirrors").join("local");
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".git")?.to_owned()))
            .collect()
    }

    /// Returns the path of the local task's mirror below `mirrors/`.
    fn local_place(name: &str) -> PathBuf {
        Path::new("local").join(file_name(name)).with_added_extension("git")
    }

    /// Prepares a git command with `folder` as its work tree, without the folder's own
    /// configuration.
    fn at_work_in<'a>(&self, folder: &Path, what: &str) -> Git<'a> {
        self.git(what)
            .with(Effort::Transfer, self.config())
            .args(["-c", "core.bare=false"])
            .env("GIT_WORK_TREE", folder)
            .current_directory(folder)
    }
}

/// Runs the command with the umask of the user who started the program.
fn with_mask_of_user(own: &std::process::Command) -> Command {
    let mut command = Command::new("sh");
    let mask = format!("{:03o}", private::mask_of_user());
    command.args(["-c", "umask \"$0\"; exec \"$@\"", &mask]);
    command.arg(own.get_program()).args(own.get_args()).env_clear();
    command.envs(own.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if let Some(directory) = own.get_current_dir() {
        command.current_dir(directory);
    }
    command
}

fn unreadable(folder: &Path, error: &io::Error) -> RepositoryError {
    RepositoryError::Unexpected {
        what: format!("the folder {}", folder.display()),
        reason: format!("{error}; give an existing folder that this user may read"),
    }
}
