//! Bare repositories of a folder, with their whole histories, and their copies on a fake forge.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::fake::github::Repository;

/// A bare repository of the folder, and its size.
pub struct History {
    pub name: String,
    pub path: PathBuf,
    /// The tip of its default branch.
    pub tip: String,
    pub commits: usize,
    pub files: usize,
    pub megabytes: u64,
    /// Objects that its references lead to and that are not there, as in a copy without the largest
    /// files.
    pub missing: usize,
}

/// Returns the bare repositories in `folder`: `name.git`, `name`, or `name/repo`. Others are left
/// out.
pub fn in_folder(folder: &Path) -> anyhow::Result<Vec<History>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("{} cannot be read", folder.display()))?;
    let mut found = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let name = name.rsplit('+').next().unwrap_or_default().to_owned();
        let places = [path.clone(), path.join("repo")];
        if let Some(path) = places.into_iter().find(|place| place.join("objects").is_dir()) {
            found.push(History::read(name, path)?);
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(found)
}

impl History {
    fn read(name: String, path: PathBuf) -> anyhow::Result<Self> {
        let tip = git(&path, &["rev-parse", "--verify", "HEAD"])?;
        let commits = git(&path, &["rev-list", "--count", "HEAD"])?.parse()?;
        let files = git(&path, &["ls-tree", "-r", "--name-only", "HEAD"])?.lines().count();
        let kilobytes = git(&path, &["count-objects", "-v"])?
            .lines()
            .filter_map(|line| line.strip_prefix("size-pack: "))
            .find_map(|size| size.parse::<u64>().ok());
        let reached = git(&path, &["rev-list", "--objects", "--all", "--quiet", "--missing=print"])?;
        Ok(Self {
            missing: reached.lines().filter(|line| line.starts_with('?')).count(),
            name,
            path,
            tip,
            commits,
            files,
            megabytes: kilobytes.unwrap_or_default() / 1024,
        })
    }

    /// Puts one commit behind a repository of the forge, with its whole history, as its `main`: what
    /// came later is not there. The objects stay where they are.
    pub fn publish_at(&self, commit: &str, repository: &Repository) -> anyhow::Result<()> {
        let bare = repository.git().path().to_owned();
        self.lend_objects(&bare)?;
        git(&bare, &["update-ref", "refs/heads/main", commit])?;
        Ok(())
    }

    fn lend_objects(&self, bare: &Path) -> anyhow::Result<()> {
        let objects = self.path.join("objects").canonicalize()?;
        Ok(std::fs::write(
            bare.join("objects/info/alternates"),
            format!("{}\n", objects.display()),
        )?)
    }

    /// Puts all branches and tags behind a repository of the forge, with the default branch as its
    /// `main`. The objects stay where they are.
    pub fn publish(&self, repository: &Repository) -> anyhow::Result<()> {
        let bare = repository.git().path().to_owned();
        self.lend_objects(&bare)?;
        let from = self.path.to_string_lossy().into_owned();
        let references = ["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"];
        git(
            &bare,
            &[&["fetch", "--quiet", "--no-auto-gc", &from], &references[..]].concat(),
        )?;
        git(&bare, &["update-ref", "refs/heads/main", &self.tip])?;
        Ok(())
    }
}

/// Runs git in a repository and returns what it printed. Nothing of the user's configuration is
/// read.
pub fn git(folder: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git")
        .args(["-c", "safe.directory=*"])
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .context("git cannot be started")?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(
        output.status.success(),
        "git {} in {} failed: {complaint}",
        arguments.join(" "),
        folder.display()
    );
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
