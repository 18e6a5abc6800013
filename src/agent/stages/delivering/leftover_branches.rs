//! Deletes branches with unfinished work, beside the item's own branch, once that work was
//! delivered.
//!
//! A branch of the run itself shows an earlier state of its result. That of an earlier run is only
//! deleted if the result has its commits, or every file it changed in the same form. The remote
//! compares and deletes in one step, so that commits of others are never deleted.

use std::collections::BTreeSet;

use crate::agent::claim::Claim;
use crate::agent::record::Record;
use crate::agent::record::interruption::Interruption;
use crate::agent::workspace::source::Source;
use crate::forge::Item;
use crate::journal::fact::Fact;
use crate::repository::git::address::Login;
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};

/// Number of earlier runs that are examined.
const LOOKED_THROUGH: u32 = 20;

/// Deletes obsolete branches. A failure is only logged, since such a branch does no harm.
pub(crate) async fn clear_unfinished(claim: &mut Claim, item: &Item, source: &Source) {
    // Work on a fork is never pushed to a branch beside it.
    if item.change.as_ref().is_some_and(|change| change.is_fork) {
        return;
    }
    let login = source.remote.as_ref().and_then(|remote| remote.login.as_ref());
    let cleared = async {
        let delivered = claim.record.delivered.head.clone();
        for (branch, commits) in beside(&claim.record) {
            clear(claim, &source.mirror, login, &branch, &commits).await?;
        }
        for earlier in claim
            .services
            .store
            .runs(Some(&claim.lease.task), LOOKED_THROUGH)
            .await?
        {
            let record = match Record::read(&earlier) {
                Ok(record) => record,
                Err(error) => {
                    tracing::warn!(task = %claim.lease.task, "branches of an earlier run stay: {error}");
                    continue;
                }
            };
            let (Some(base), Some(head)) = (&record.planned.base, &delivered) else {
                continue;
            };
            if earlier.id == claim.lease.run || !earlier.state.is_final() {
                continue;
            }
            for (branch, commits) in beside(&record) {
                let there = source.mirror.branch(&branch).await?;
                let Some(commit) = there.filter(|commit| commits.contains(commit)) else {
                    continue;
                };
                if holds(&source.mirror, &base.commit, &commit, head).await? {
                    clear(claim, &source.mirror, login, &branch, &[commit]).await?;
                }
            }
        }
        Ok::<(), Interruption>(())
    };
    if let Err(interruption) = cleared.await {
        tracing::warn!(task = %claim.lease.task, "a branch with unfinished work could not be deleted: {interruption:?}");
    }
}

/// Deletes the branch if it is at one of `commits`; otherwise it is already deleted, or somebody
/// else has continued on it.
async fn clear(
    claim: &Claim,
    mirror: &Mirror,
    login: Option<&Login>,
    branch: &str,
    commits: &[CommitId],
) -> Result<(), RepositoryError> {
    for commit in commits.iter().rev() {
        match mirror.delete(login, commit, branch).await {
            Ok(()) => {
                claim.note(Fact::BranchDeleted {
                    branch: branch.to_owned(),
                });
                return Ok(());
            }
            Err(RepositoryError::Moved { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the branches with unfinished work of the run, except its own.
fn beside(record: &Record) -> Vec<(String, Vec<CommitId>)> {
    let own = record.head_branch();
    let all = record.delivered.unfinished.iter().filter(|(branch, _)| *branch != own);
    all.map(|(branch, commits)| (branch.clone(), commits.clone())).collect()
}

/// Returns true if `delivered` has the commit `work` in its history, or every file that changed
/// from `base` to that in the same form.
async fn holds(mirror: &Mirror, base: &CommitId, work: &CommitId, delivered: &CommitId) -> Result<bool, Interruption> {
    if mirror.descends(delivered, work).await? {
        return Ok(true);
    }
    let changed = mirror.changed(base, work).await?;
    let others = mirror.changed(work, delivered).await?;
    let others: BTreeSet<&str> = others.iter().map(|file| file.path.as_str()).collect();
    Ok(changed.iter().all(|file| !others.contains(file.path.as_str())))
}
