//! Reads a folder's history from its `.git`, and finds the repository around it. Without git, which
//! would first read the folder's configuration, and that may be a stranger's.

use std::path::{Path, PathBuf};

use crate::repository::CommitId;

/// The existing history of a folder.
pub(super) struct History {
    pub(super) objects: PathBuf,
    pub(super) head: CommitId,
}

/// Returns the top of the repository around `folder`; `None` if `folder` is itself a top.
pub(super) fn top_above(folder: &Path) -> Option<PathBuf> {
    if git_folder(folder).is_some() {
        return None;
    }
    let is_top = |ancestor: &&Path| git_folder(ancestor).is_some_and(|git_folder| git_folder.join("HEAD").is_file());
    folder.ancestors().skip(1).find(is_top).map(Path::to_owned)
}

/// Returns `info/exclude`, the ignore file of this clone alone, if there is one.
pub(super) fn private_excludes(top: &Path) -> Option<PathBuf> {
    let path = common_folder(&git_folder(top)?).join("info").join("exclude");
    path.is_file().then_some(path)
}

/// Returns the folder's object store and HEAD; `None` without a complete history.
pub(super) fn history(folder: &Path) -> Option<History> {
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

/// Returns the folder's `.git`, following it if it is a file (a work tree or submodule).
fn git_folder(folder: &Path) -> Option<PathBuf> {
    let path = folder.join(".git");
    if path.is_dir() {
        return Some(path);
    }
    let elsewhere = read(&path)?;
    Some(folder.join(elsewhere.strip_prefix("gitdir: ")?))
}

/// Returns the git folder that all work trees of the repository share.
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
