//! What a run does with the hosts that its container asked for in vain: the model is told, and the
//! record keeps them.

use crate::agent::claim::Claim;
use crate::egress::Refusal;
use crate::gateway::ledger::Ledger;

/// Most hosts that are named to the model after one call.
const MOST_TO_THE_MODEL: usize = 3;

/// Returns what the model is told after a call during which the container was refused
/// something.
pub(crate) fn refused_just_now(claim: &Claim, ledger: &Ledger) -> Option<String> {
    let refused = ledger.take_recent();
    let sentences: Vec<String> = refused
        .iter()
        .take(MOST_TO_THE_MODEL)
        .map(|refusal| format!("[network: {}.]", refusal.sentence()))
        .collect();
    let text = claim.services.redactor.clean(&sentences.join("\n")).into_string();
    (!text.is_empty()).then_some(text)
}

/// Takes over into the record what was refused until now.
pub(crate) fn note_refused(claim: &mut Claim, ledger: &Ledger) {
    let redactor = &claim.services.redactor;
    // A name can be made of anything, a secret too; the record is no place for it.
    let is_clean = |refusal: &Refusal| {
        let host = refusal.destination.host.to_string();
        redactor.clean(&host).as_str() == host
    };
    claim.record.refused = ledger.all().into_iter().filter(is_clean).collect();
}
