//! Work on items that fewer people may read than the repository.
//!
//! A confidential issue has few readers; a branch, its commits and a change request can be read by
//! everybody who can read the project. Where such work is permitted, all names are neutral. An
//! issue may become confidential during the work, so this is checked again before each push.

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::workspace::branch_name::branch_name;
use crate::forge::{Discretion, Item};
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};

const CONFIDENTIAL: &str = "the issue is confidential, and more people can read the project than the issue, so it is not \
    worked on; make the issue or the project visible to the same people, or set `gitlab.confidential_issues: neutral_names`";

const BECAME_CONFIDENTIAL: &str = "the issue became confidential while it was worked on, and more people can read the project \
    than the issue, so nothing of the work was pushed; what was done so far is kept by the worker";

/// Refuses an item that may not be worked on, and selects neutral names where only those are safe.
pub(crate) fn keep_discretion(claim: &mut Claim, item: &Item) -> Result<(), Interruption> {
    match item.discretion {
        Discretion::NotNeeded => Ok(()),
        Discretion::Refused => Err(Interruption::refused_by_policy(CONFIDENTIAL)),
        Discretion::NeutralNames => {
            claim.record.request.is_discreet = true;
            claim.record.request.title = neutral_title(item.task.number());
            Ok(())
        }
    }
}

/// Refuses to push if the item became confidential after its names were chosen.
pub(crate) fn may_be_published(claim: &Claim, item: &Item) -> Result<(), Interruption> {
    match item.discretion {
        Discretion::NotNeeded => Ok(()),
        Discretion::NeutralNames if claim.record.request.is_discreet => Ok(()),
        Discretion::NeutralNames | Discretion::Refused => Err(Interruption::refused_by_policy(BECAME_CONFIDENTIAL)),
    }
}

/// Returns a branch name for the work, made from `title` if that may be shown.
pub(crate) fn branch_of(claim: &Claim, title: &str) -> String {
    branch_name(
        &claim.lease.task,
        if claim.record.request.is_discreet { "" } else { title },
    )
}

/// Returns the commit to publish: the accepted one, or for a confidential item a single commit with
/// a neutral message in place of all commits.
pub(crate) async fn shown_as(claim: &Claim, mirror: &Mirror, accepted: CommitId) -> Result<CommitId, RepositoryError> {
    let Some(base) = claim
        .record
        .planned
        .base
        .as_ref()
        .filter(|_| claim.record.request.is_discreet)
    else {
        return Ok(accepted);
    };
    let run = claim.lease.run.to_string();
    mirror
        .as_one(&base.commit, &accepted, &claim.record.request.title, &run)
        .await
}

/// Returns a title that reveals only the number of the issue.
pub fn neutral_title(number: Option<u64>) -> String {
    match number {
        Some(number) => format!("Resolve issue {number}"),
        None => "Changes".to_owned(),
    }
}
