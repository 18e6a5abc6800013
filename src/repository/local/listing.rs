//! Lists the files that git would add: tracked files and those that are not ignored.
//!
//! `git add` itself is not used: in a nested repository it starts git with that one's
//! configuration.

use std::collections::HashSet;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::repository::RepositoryError;
use crate::repository::git::command::Git;
use crate::repository::local::surroundings::private_excludes;

/// Lists the files below `inside`, a folder in the work tree `top` (empty for all of it), relative
/// to `inside` and NUL-terminated. `git` must have `top` as its work tree.
pub(super) async fn listed<'a>(
    git: &impl Fn() -> Git<'a>,
    top: &Path,
    inside: &Path,
) -> Result<Vec<u8>, RepositoryError> {
    let staged = git().args(["ls-files", "-z", "--stage"]).bytes().await?;
    let submodules: HashSet<&[u8]> = staged
        .split(|byte| *byte == 0)
        .filter(|line| line.starts_with(b"160000 "))
        .filter_map(|line| line.splitn(2, |byte| *byte == b'\t').nth(1))
        .collect();
    let exclude = private_excludes(top).map(|path| format!("--exclude-from={}", path.display()));
    let below = (!inside.as_os_str().is_empty()).then_some(inside);
    let mut found = Vec::new();
    let ended = git()
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .args(exclude)
        .arg("--")
        .args(below)
        .each(|chunk| {
            found.extend_from_slice(chunk);
            ControlFlow::Continue(())
        })
        .await?;
    // Git only warns about an unreadable folder and goes on without it.
    if ended.code != Some(0) || ended.complaint.contains("could not open directory") {
        return Err(RepositoryError::Unexpected {
            what: format!("listing {}", top.join(inside).display()),
            reason: format!(
                "{}; let this user read it, or name it in .gitignore",
                ended.complaint.trim()
            ),
        });
    }
    let mut prefix = inside.as_os_str().as_bytes().to_vec();
    if below.is_some() {
        prefix.push(b'/');
    }
    let mut paths = Vec::with_capacity(found.len());
    for path in found.split(|byte| *byte == 0) {
        let Some(relative) = path.strip_prefix(prefix.as_slice()).filter(|path| !path.is_empty()) else {
            continue;
        };
        if path.ends_with(b"/") {
            tracing::warn!(path = %String::from_utf8_lossy(path), "a repository inside the folder was left out");
        } else if !submodules.contains(path) {
            paths.extend_from_slice(relative);
            paths.push(0);
        }
    }
    Ok(paths)
}
