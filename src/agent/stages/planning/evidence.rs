//! The places that a plan rests on: looked up at the base commit, asked for again once where they
//! are wrong, and then marked.

use crate::agent::claim::Claim;
use crate::agent::prompt::places;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::sections::Evidence;
use crate::forge::Item;
use crate::index::evidence;
use crate::plan::Plan;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;

/// Records the evidence of a plan as it stands in the base.
pub(super) async fn check(
    claim: &mut Claim,
    mirror: &Mirror,
    commit: &CommitId,
    plan: &Plan,
) -> Result<(), Interruption> {
    let filter = claim.record.planned.rules.files.filter();
    let mut checked = Vec::new();
    for citation in &plan.evidence {
        let fault = if filter.takes(&citation.path) {
            evidence::cited(mirror, commit, citation)
                .await?
                .err()
                .map(|fault| fault.to_string())
        } else {
            Some("the project's rules leave this file out".to_owned())
        };
        checked.push(Evidence {
            cited: citation.clone(),
            link: evidence::link(&claim.record.planned.files_url, citation).filter(|_| fault.is_none()),
            fault,
        });
    }
    claim.record.planned.evidence = checked;
    Ok(())
}

/// Returns the message about evidence that does not hold; `None` if all of it does.
pub(super) fn doubts(claim: &Claim) -> Option<String> {
    let evidence = claim.record.planned.evidence.iter();
    let faults: Vec<String> = evidence
        .filter_map(|evidence| Some(format!("{}: {}", evidence.cited.place(), evidence.fault.as_ref()?)))
        .collect();
    (!faults.is_empty()).then(|| places::doubtful(&faults))
}

/// Returns where the files of a commit can be looked at, by the address of the item's page.
pub(super) fn files_url(item: &Item, commit: &CommitId) -> String {
    let home = match &item.change {
        Some(change) if change.is_fork => change.head_clone_url.trim_end_matches(".git"),
        _ => item
            .url
            .split_once("/-/")
            .map(|(home, _)| home)
            .or_else(|| Some(item.url.rsplit_once('/')?.0.rsplit_once('/')?.0))
            .unwrap_or_default(),
    };
    evidence::folder(home, item.url.contains("/-/"), commit)
}
