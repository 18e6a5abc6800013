//! Tests with real repositories and real git, and commits that no honest git would make.

mod claiming;
mod coming_back;
mod contents;
mod deltas;
mod folder;
mod forks;
mod hostile;
mod mirroring;
mod fetching;
mod old_histories;
mod pruning;
mod unfinished;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tokio::io::AsyncReadExt;

use super::git::address::Remote;
use super::incoming::accepting::Acceptance;
use super::incoming::receiving::Incoming;
use super::mirror::Mirror;
use super::remote::pushing::Pushable;
use super::{CommitId, Config, RepositoryError};

const RUN: &str = "019aa6b2-0000-7000-8000-000000000000";

/// A forge's repository, a state directory, and a folder that stands for the container.
struct World {
    folder: TempDir,
    config: Config,
}

impl World {
    fn new() -> Self {
        let world = Self {
            folder: tempfile::tempdir().unwrap(),
            config: Config::default(),
        };
        git(
            world.folder.path(),
            &["init", "-q", "--bare", "-b", "main", "upstream.git"],
        );
        world
    }

    fn with_a_commit() -> Self {
        let world = Self::new();
        world.upstream_commit("README.md", "Hello\n");
        world
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn remote(&self) -> Remote {
        Remote {
            url: self.path("upstream.git").display().to_string(),
            login: None,
        }
    }

    /// Commits to the forge's main branch, as somebody else would.
    fn upstream_commit(&self, file: &str, content: &str) -> CommitId {
        let work = tempfile::tempdir_in(self.folder.path()).unwrap();
        let upstream = self.path("upstream.git");
        git(work.path(), &["init", "-q", "-b", "main"]);
        let _ = try_git(work.path(), &["pull", "-q", upstream.to_str().unwrap(), "main"], b"");
        std::fs::write(work.path().join(file), content).unwrap();
        commit_all(work.path(), "Somebody's work");
        git(work.path(), &["push", "-q", upstream.to_str().unwrap(), "main"]);
        git(work.path(), &["rev-parse", "HEAD"]).parse().unwrap()
    }

    async fn mirror(&self) -> Mirror {
        self.fetched().await.unwrap()
    }

    async fn fetched(&self) -> Result<Mirror, RepositoryError> {
        Mirror::fetch(&self.config, &self.path("state"), &self.remote()).await
    }

    /// Makes a repository as the container gets it, with `base` checked out.
    async fn container(&self, mirror: &Mirror, base: Option<&CommitId>) -> PathBuf {
        let path = self.path("container");
        if path.exists() {
            std::fs::remove_dir_all(&path).unwrap();
        }
        let mut pack = Vec::new();
        let mut stream = mirror.pack(base.map_or(&[][..], std::slice::from_ref)).await.unwrap();
        stream.read_to_end(&mut pack).await.unwrap();
        git(self.folder.path(), &["init", "-q", "-b", "main", "container"]);
        try_git(&path, &["index-pack", "--stdin"], &pack).unwrap();
        if let Some(base) = base {
            git(&path, &["reset", "-q", "--hard", base.as_str()]);
        }
        path
    }

    /// Receives what the container has and the base has not, as the executor would send it.
    async fn receive(
        &self,
        mirror: &Mirror,
        container: &Path,
        base: Option<&CommitId>,
    ) -> Result<Incoming, RepositoryError> {
        mirror.receive(pack_of(container, "HEAD", base).as_slice()).await
    }

    /// Accepts `commit` as the result of the run, as if it came from a container.
    async fn accepted(&self, mirror: &Mirror, commit: &CommitId) -> Pushable {
        let name = format!("refs/coding-agent/{RUN}/accepted");
        git(mirror.path(), &["update-ref", &name, commit.as_str()]);
        mirror.pushable(RUN, commit).await.unwrap()
    }

    fn acceptance(container: &Path, base: Option<&CommitId>) -> Acceptance {
        Acceptance {
            base: base.cloned(),
            head: head(container),
            run: RUN.to_owned(),
        }
    }
}

fn head(repository: &Path) -> CommitId {
    git(repository, &["rev-parse", "HEAD"]).parse().unwrap()
}

fn pack_of(repository: &Path, tip: &str, base: Option<&CommitId>) -> Vec<u8> {
    let without = base.map(|base| format!("^{base}\n")).unwrap_or_default();
    let wanted = format!("{}\n{without}", git(repository, &["rev-parse", tip]));
    let arguments = ["pack-objects", "--stdout", "--revs", "--thin", "-q"];
    try_git(repository, &arguments, wanted.as_bytes()).unwrap()
}

fn commit_all(repository: &Path, message: &str) -> CommitId {
    git(repository, &["add", "-A"]);
    git(repository, &["commit", "-q", "-m", message]);
    head(repository)
}

/// Runs git as a stranger would, and fails the test if it fails.
fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = try_git(directory, arguments, b"").unwrap();
    String::from_utf8(output).unwrap().trim_end().to_owned()
}

fn try_git(directory: &Path, arguments: &[&str], input: &[u8]) -> Result<Vec<u8>, String> {
    let mut child = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env_remove("GIT_DIR")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_AUTHOR_NAME", "Model")
        .env("GIT_AUTHOR_EMAIL", "model@container")
        .env("GIT_AUTHOR_DATE", "@1700000000 +0900")
        .env("GIT_COMMITTER_NAME", "Model")
        .env("GIT_COMMITTER_EMAIL", "model@container")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error.to_string())?;
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_vec();
    let feeding = std::thread::spawn(move || std::io::Write::write_all(&mut stdin, &input));
    let output = child.wait_with_output().map_err(|error| error.to_string())?;
    let _ = feeding.join();
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(format!(
        "git {arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    ))
}

fn write(folder: &Path, file: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}
