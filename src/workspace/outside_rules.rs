//! Changes that the project's rules exclude.
//!
//! A model may be reminded of them by a list from its container. What counts is the comparison in
//! the mirror: nothing in a container has a say in it.

use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::rules::Files;
use crate::workspace::base::Base;
use crate::workspace::error::WorkspaceError;

/// Refuses a commit of the mirror that changes a file which the rules exclude.
pub(crate) async fn refuse_changes(
    mirror: &Mirror,
    base: &Base,
    head: &CommitId,
    files: &Files,
) -> Result<(), WorkspaceError> {
    if !files.leave_something_out() {
        return Ok(());
    }
    let changed = mirror.changed(base.pushed_up_to(), head).await?;
    match named(files, changed.into_iter().map(|changed| changed.path)) {
        None => Ok(()),
        Some(paths) => Err(WorkspaceError::OutsideRules(format!(
            "the work changes what {}, so nothing of it was pushed: {paths}; let the rules on the branch `{}` allow it, or \
             ask for something else",
            files.reason(),
            base.branch
        ))),
    }
}

/// Names the first few of the paths that the rules exclude, as inline code; `None` if there are
/// none.
pub(crate) fn named(files: &Files, paths: impl Iterator<Item = String>) -> Option<String> {
    const MOST: usize = 10;
    let filter = files.filter();
    let left_out: Vec<String> = paths.filter(|path| !path.is_empty() && !filter.takes(path)).collect();
    if left_out.is_empty() {
        return None;
    }
    let shown = left_out
        .iter()
        .take(MOST)
        .map(|path| format!("`{}`", path.escape_debug()));
    let shown = shown.collect::<Vec<_>>().join(", ");
    Some(match left_out.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    })
}
