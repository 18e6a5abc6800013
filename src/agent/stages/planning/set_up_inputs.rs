//! The project's files at the base, and those among them that decide what a set-up installs.

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::stages::project_rules::MOST_FILES;
use crate::forge::Item;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::repository::reading::files::TreeEntry;
use crate::workspace::base::Base;
use crate::workspace::set_up::dependencies::{Dependencies, Project};
use crate::workspace::set_up::dependency_files::may_lead_elsewhere;

/// Maximum number of dependency lists that are searched for references to other files.
const MOST_POINTERS: usize = 16;
const LARGEST_POINTER: u64 = 64 * 1024;

/// Returns true if the run starts from the tip of the project's default branch. Only such runs save
/// their set-up or start from a saved one. On any other branch a stranger, or a model in an earlier
/// run, may have written what the set-up executes, and its results (programs early in the search
/// path, ignored files) would reach later runs on the default branch.
pub(super) async fn is_default_tip(item: &Item, base: &Base, mirror: &Mirror) -> Result<bool, Interruption> {
    let Some(branch) = item.default_branch.as_deref() else {
        return Ok(false);
    };
    let is_untouched = item.change.is_none() && !base.holds_work && base.branch == branch;
    Ok(is_untouched && mirror.branch(branch).await?.as_ref() == Some(&base.commit))
}

/// Returns the files of the base that the rules do not exclude, and records the inputs of the
/// set-up.
pub(super) async fn files(
    claim: &mut Claim,
    mirror: &Mirror,
    commit: &CommitId,
    place: Option<String>,
) -> Result<Vec<String>, Interruption> {
    let (files, are_more) = mirror.files(commit, MOST_FILES).await?;
    claim.record.planned.dependencies = match place.filter(|_| !are_more) {
        Some(place) => Some(Dependencies::of(Project {
            repository: &place,
            files: &files,
            tree: mirror.tree(commit).await?,
            pointers: pointers(mirror, commit, &files).await?,
        })),
        None => None,
    };
    let filter = claim.record.planned.rules.files.filter();
    let paths = files.into_iter().map(|file| file.path);
    Ok(paths.filter(|path| filter.takes(path)).collect())
}

/// Reads the dependency lists that may refer an installer to other files. A list that is too large,
/// or beyond the maximum number, is `None` and counts as one that does.
async fn pointers(
    mirror: &Mirror,
    commit: &CommitId,
    files: &[TreeEntry],
) -> Result<Vec<Option<String>>, Interruption> {
    let mut pointers = Vec::new();
    for file in files.iter().filter(|file| may_lead_elsewhere(&file.path)) {
        if pointers.len() == MOST_POINTERS || file.size > LARGEST_POINTER {
            pointers.push(None);
            break;
        }
        let bytes = mirror.file(commit, &file.path, LARGEST_POINTER).await?;
        pointers.push(bytes.and_then(|bytes| String::from_utf8(bytes).ok()));
    }
    Ok(pointers)
}
