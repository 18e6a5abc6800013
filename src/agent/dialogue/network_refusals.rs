//! Hosts that the container was refused: the model is told, and the record lists them.

use crate::agent::claim::Claim;
use crate::egress::Refusal;
use crate::gateway::ledger::Ledger;

/// Maximum number of hosts that are named to the model after one call.
const MOST_TO_THE_MODEL: usize = 3;

/// Returns the note for the model on connections that were refused during a call.
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

/// Copies all refusals so far into the record.
pub(crate) fn note_refused(claim: &mut Claim, ledger: &Ledger) {
    let redactor = &claim.services.redactor;
    // A host name may contain a secret, which must not get into the record.
    let is_clean = |refusal: &Refusal| {
        let host = refusal.destination.host.to_string();
        redactor.clean(&host).as_str() == host
    };
    claim.record.worked.refused = ledger.all().into_iter().filter(is_clean).collect();
}
