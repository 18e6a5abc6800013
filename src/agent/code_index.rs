//! The code index of a run's base commit. A run that cannot have it goes on without, and says so.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::index::{Index, Reranker};
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::workspace::tools::code_search::CodeSearch;

/// Longest time that a run waits for an index to be made. What was read till then is kept.
const LONGEST: Duration = Duration::from_mins(3);

/// Opens the index of `commit`, brought up to it; `None` where it is off or cannot be had.
pub(crate) async fn open(
    claim: &mut Claim,
    mirror: &Mirror,
    commit: &CommitId,
) -> Result<Option<CodeSearch>, Interruption> {
    let config = claim.services.settings.index.clone();
    if !config.enabled {
        return Ok(None);
    }
    let filling =
        async { Ok::<_, Interruption>(tokio::time::timeout(LONGEST, Index::open_at(&config, mirror, commit)).await) };
    let reason = match claim.unless_stopped(filling).await? {
        Ok(Ok((index, _))) => {
            let index = index.reordered_by(reranker(claim));
            let files = &claim.record.planned.rules.files;
            let redactor = Arc::clone(&claim.services.redactor);
            return Ok(Some(CodeSearch::new(index, commit.clone(), files, redactor)));
        }
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it was not finished within {} seconds", LONGEST.as_secs()),
    };
    note_unused(claim, &reason);
    Ok(None)
}

/// Returns the model that reorders places by their meaning, if one is configured.
fn reranker(claim: &Claim) -> Option<Reranker> {
    let services = &claim.services;
    let model = services.models.embedder(claim.record.request.local_only.as_deref())?;
    Some(Reranker {
        model,
        redactor: Arc::clone(&services.redactor),
    })
}

/// Tells people that the run goes on without the index.
pub(crate) fn note_unused(claim: &mut Claim, reason: &str) {
    claim.warn(format!("The code index was not used: {reason}."));
}
