//! Reads files and differences of commits without a checkout.

use std::ops::ControlFlow;

use crate::repository::git::command::Git;
use crate::repository::git::failure::classify;
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, NotACommitId, RepositoryError};

/// An entry of a commit's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// The path; a name that is not UTF-8 has replacement characters.
    pub path: String,
    /// The id of the content.
    pub object: String,
    pub size: u64,
    /// True for a symbolic link, whose content is its target.
    pub is_link: bool,
}

/// A file that differs between two commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedFile {
    pub how: ChangeKind,
    pub path: String,
}

/// The way in which a file differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    Created,
    Deleted,
    Changed,
}

impl Mirror {
    /// Returns at most `limit` files of a commit, and whether there are more.
    pub async fn files(&self, commit: &CommitId, limit: usize) -> Result<(Vec<TreeEntry>, bool), RepositoryError> {
        self.files_below(commit, "", limit).await
    }

    /// Returns at most `limit` files of a commit that lie below a folder, and whether there are
    /// more. The empty path is that of the root.
    pub async fn files_below(
        &self,
        commit: &CommitId,
        folder: &str,
        limit: usize,
    ) -> Result<(Vec<TreeEntry>, bool), RepositoryError> {
        let mut files = Vec::new();
        if !folder.is_empty() && !may_be_within(folder) {
            return Ok((files, false));
        }
        let mut git = self.git(format!("listing the files of {commit}")).args([
            "ls-tree",
            "-r",
            "-z",
            "--full-tree",
            "--long",
            commit.as_str(),
        ]);
        if !folder.is_empty() {
            // Without the slash, a file of that name would be listed as well.
            git = git.args(["--", &format!("{folder}/")]);
        }
        let more = split(git, b'\0', |line| {
            if let Some(entry) = entry(line) {
                if files.len() == limit {
                    return ControlFlow::Break(());
                }
                files.push(entry);
            }
            ControlFlow::Continue(())
        })
        .await?;
        Ok((files, more))
    }

    /// Returns at most `limit` names of what lies in the root of a commit; those of folders end
    /// with a slash.
    pub async fn names_in_root(&self, commit: &CommitId, limit: usize) -> Result<Vec<String>, RepositoryError> {
        let mut names = Vec::new();
        let git =
            self.git(format!("listing the root of {commit}"))
                .args(["ls-tree", "-z", "--full-tree", commit.as_str()]);
        split(git, b'\0', |line| {
            if names.len() == limit {
                return ControlFlow::Break(());
            }
            names.extend(name_in_root(line));
            ControlFlow::Continue(())
        })
        .await?;
        Ok(names)
    }

    /// Returns the id of a commit's tree, which is equal for commits with the same files.
    pub async fn tree(&self, commit: &CommitId) -> Result<CommitId, RepositoryError> {
        let what = format!("looking at {commit}");
        let printed = self
            .git(&what)
            .args(["rev-parse", "--verify", &format!("{commit}^{{tree}}")])
            .text()
            .await?;
        printed
            .trim()
            .parse()
            .map_err(|error: NotACommitId| RepositoryError::Unexpected {
                what,
                reason: error.to_string(),
            })
    }

    /// Returns a file's bytes, or `None` if there is no such file; fails if it is larger than
    /// `max_bytes`.
    pub async fn file(
        &self,
        commit: &CommitId,
        path: &str,
        max_bytes: u64,
    ) -> Result<Option<Vec<u8>>, RepositoryError> {
        let path = path.trim_start_matches("./");
        if !may_be_within(path) {
            return Ok(None);
        }
        let what = format!("reading {path} of {commit}");
        let listed = self
            .git(&what)
            .args(["ls-tree", "-z", "--full-tree", "--long", commit.as_str(), "--", path])
            .bytes()
            .await?;
        let Some(line) = listed.split(|byte| *byte == 0).find(|line| !line.is_empty()) else {
            return Ok(None);
        };
        let Some(found) = entry(line) else { return Ok(None) };
        if found.size > max_bytes {
            let reason = format!("the file has {} bytes, and {max_bytes} are the limit", found.size);
            return Err(RepositoryError::Unexpected { what, reason });
        }
        self.git(what)
            .args(["cat-file", "blob", &found.object])
            .bytes()
            .await
            .map(Some)
    }

    /// Returns the files that differ between two commits, in order; a renamed file counts as
    /// deleted and created.
    pub async fn changed(&self, from: &CommitId, to: &CommitId) -> Result<Vec<ChangedFile>, RepositoryError> {
        let listed = self
            .git(format!("comparing {from} with {to}"))
            .args(["diff-tree", "-r", "-z", "--name-status", "--no-renames"])
            .args([from.as_str(), to.as_str(), "--"])
            .bytes()
            .await?;
        let text = String::from_utf8_lossy(&listed);
        let mut fields = text.split('\0');
        let mut changed = Vec::new();
        while let (Some(status), Some(path)) = (fields.next(), fields.next()) {
            let how = match status {
                "A" => ChangeKind::Created,
                "D" => ChangeKind::Deleted,
                _ => ChangeKind::Changed,
            };
            changed.push(ChangedFile {
                how,
                path: path.to_owned(),
            });
        }
        Ok(changed)
    }

    /// Returns the unified diff between two commits (no external diff, no textconv), at most
    /// `max_bytes`, and whether it was cut. From [`CommitId::nothing`] it shows everything as new.
    pub async fn diff(
        &self,
        from: &CommitId,
        to: &CommitId,
        max_bytes: usize,
    ) -> Result<(String, bool), RepositoryError> {
        let comparison = self
            .git(format!("comparing {from} with {to}"))
            .args(["diff", "--no-ext-diff", "--no-textconv", "--no-color", "--find-renames"])
            .args([from.as_str(), to.as_str(), "--"]);
        whole_lines(comparison, max_bytes).await
    }
}

/// Tells whether something in a commit may have this path. Git fails for others.
fn may_be_within(path: &str) -> bool {
    !path.contains('\0') && !path.split('/').any(|part| matches!(part, "" | "." | ".."))
}

/// Parses `mode type id<TAB>name`; `None` unless it is a file or a folder.
fn name_in_root(line: &[u8]) -> Option<String> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let name = String::from_utf8_lossy(&line[tab + 1..]);
    match std::str::from_utf8(&line[..tab]).ok()?.split(' ').nth(1)? {
        "blob" => Some(name.into_owned()),
        "tree" => Some(format!("{name}/")),
        _ => None,
    }
}

/// Parses `mode type id size<TAB>path`; `None` unless it is a file.
fn entry(line: &[u8]) -> Option<TreeEntry> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let head = std::str::from_utf8(&line[..tab]).ok()?;
    let mut fields = head.split_whitespace();
    let (mode, kind, object, size) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    (kind == "blob").then_some(())?;
    Some(TreeEntry {
        path: String::from_utf8_lossy(&line[tab + 1..]).into_owned(),
        object: object.to_owned(),
        size: size.parse().ok()?,
        is_link: mode == "120000",
    })
}

/// Calls `take` with each separated part of git's output; returns whether `take` broke early.
async fn split(
    git: Git<'_>,
    separator: u8,
    mut take: impl FnMut(&[u8]) -> ControlFlow<()> + Send,
) -> Result<bool, RepositoryError> {
    let mut rest: Vec<u8> = Vec::new();
    let what = git.what().to_owned();
    let ended = git
        .each(|chunk| {
            for part in chunk.split_inclusive(|byte| *byte == separator) {
                match part.split_last() {
                    Some((last, part)) if *last == separator => {
                        rest.extend_from_slice(part);
                        let taken = take(&rest);
                        rest.clear();
                        taken?;
                    }
                    // An endless line must not fill the memory.
                    _ if rest.len() < 1024 * 1024 => rest.extend_from_slice(part),
                    _ => {}
                }
            }
            ControlFlow::Continue(())
        })
        .await?;
    if !ended.was_cut && ended.code != Some(0) {
        return Err(classify(&what, &ended.complaint));
    }
    Ok(ended.was_cut)
}

/// Returns git's output, at most `max_bytes` of whole lines, and whether it was cut.
pub(super) async fn whole_lines(git: Git<'_>, max_bytes: usize) -> Result<(String, bool), RepositoryError> {
    let mut output = Vec::new();
    let what = git.what().to_owned();
    let ended = git
        .each(|chunk| {
            output.extend_from_slice(chunk);
            if output.len() > max_bytes {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        })
        .await?;
    if !ended.was_cut && ended.code != Some(0) {
        return Err(classify(&what, &ended.complaint));
    }
    let is_cut = output.len() > max_bytes;
    if is_cut {
        output.truncate(max_bytes);
        let end = output.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        output.truncate(end);
    }
    Ok((String::from_utf8_lossy(&output).into_owned(), is_cut))
}
