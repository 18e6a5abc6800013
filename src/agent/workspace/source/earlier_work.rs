//! Finds the work that earlier runs left on the branches that this run goes on with.

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::{Record, SavedWork};
use crate::agent::reporter::Reporter;
use crate::agent::reporter::destination::ReportTarget;
use crate::forge::{ChangeHead, Item};
use crate::markdown::owned;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::task::state::State;
use crate::workspace::base::Base;

/// Number of earlier runs on an item whose branches are known.
const MOST_RUNS: u32 = 20;

/// The branch of an earlier run on the item.
pub(super) struct EarlierBranch {
    pub(super) name: String,
    /// The base of the first run on this branch, before any other went on with its work.
    pub(super) began: Base,
    /// Whether the run was the last one that had a branch, and did not come to its end.
    pub(super) was_cut_short: bool,
}

/// Returns the branches of the earlier runs on the item, newest first, each once. One whose name
/// tells more, or less, of a confidential item than this run's may is left out.
pub(super) async fn earlier_branches(claim: &Claim) -> Result<Vec<EarlierBranch>, Interruption> {
    let runs = claim.services.store.runs(Some(&claim.lease.task), MOST_RUNS).await?;
    let mut found: Vec<EarlierBranch> = Vec::new();
    let mut is_last = true;
    for run in runs.iter().filter(|run| run.id != claim.lease.run) {
        let record = match Record::read(run) {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!(task = %claim.lease.task, "the branch of an earlier run is not continued: {error}");
                is_last = false;
                continue;
            }
        };
        let Some(base) = record.planned.base else { continue };
        let was_cut_short = is_last && matches!(run.state, State::Failed | State::Stopped);
        is_last = false;
        let is_fit = record.request.is_discreet == claim.record.request.is_discreet;
        match found.iter_mut().find(|branch| branch.name == base.head_branch) {
            Some(branch) if branch.began.holds_work => branch.began = base,
            None if is_fit => found.push(EarlierBranch {
                name: base.head_branch.clone(),
                began: base,
                was_cut_short,
            }),
            Some(_) | None => {}
        }
    }
    Ok(found)
}

/// Returns the unfinished work of the last runs on a pull/merge request whose branch is at `tip`,
/// for a run that people have asked for anew; `None` if there is none to go on with.
///
/// It is on a branch beside that of the request, and counts while both are as they were: commits of
/// others on one of them are not brought onto the other. Nor is work that people did not approve.
pub(super) async fn unfinished_on_request(
    claim: &Claim,
    change: &ChangeHead,
    tip: &CommitId,
    mirror: &Mirror,
) -> Result<Option<CommitId>, Interruption> {
    if claim.record.request.round.is_some() || change.is_fork {
        return Ok(None);
    }
    let runs = claim.services.store.runs(Some(&claim.lease.task), MOST_RUNS).await?;
    for run in runs.iter().filter(|run| run.id != claim.lease.run) {
        let record = match Record::read(run) {
            Ok(record) => record,
            Err(error) => {
                tracing::warn!(task = %claim.lease.task, "the work of an earlier run is not continued: {error}");
                return Ok(None);
            }
        };
        let was_cut_short = matches!(run.state, State::Failed | State::Stopped) && record.delivered.denial.is_none();
        if !was_cut_short || record.request.is_discreet != claim.record.request.is_discreet {
            return Ok(None);
        }
        // A run may have ended before it did anything; the one before it may have work.
        let Some(SavedWork::Branch(branch)) = record.pushed() else {
            continue;
        };
        let own = record.delivered.unfinished.get(&branch);
        let own = own.map(Vec::as_slice).unwrap_or_default();
        let there = mirror.branch(&branch).await?.filter(|commit| own.contains(commit));
        if let Some(commit) = there
            && mirror.descends(&commit, tip).await?
        {
            return Ok(Some(commit).filter(|commit| commit != tip));
        }
        return Ok(None);
    }
    Ok(None)
}

/// Returns the commit before all work on a branch of the program's own that is at `commit`: where
/// it parted from the first of `targets` that there is. Where the history is cut in between, that
/// is the target branch as it is.
pub(super) async fn before_work(
    mirror: &Mirror,
    commit: &CommitId,
    targets: &[&str],
) -> Result<Option<CommitId>, Interruption> {
    for target in targets {
        if let Some(tip) = mirror.branch(target).await? {
            let parted = mirror.fork_point(&tip, commit).await?;
            return Ok(Some(parted.unwrap_or(tip)));
        }
    }
    Ok(None)
}

/// Tells whether the program opened this request, so that what is on its branch is its own work.
pub(super) async fn is_own(claim: &Claim, reporter: &Reporter, item: &Item) -> Result<bool, Interruption> {
    let ReportTarget::Item { forge, .. } = &reporter.destination else {
        return Ok(false);
    };
    if claim.services.store.followed(&item.task).await?.is_some() {
        return Ok(true);
    }
    // Anybody can write the program's marks into a request of their own.
    Ok(owned::stamp(&item.body).is_some() && forge.bot_name().await?.eq_ignore_ascii_case(&item.author))
}
