//! The stage between a product of the run and its use: a second model judges the plan before it is
//! carried out, or the result before it is delivered.
//!
//! The reviewer gives its opinion; whether it passes, goes back or is given up is decided by
//! [`crate::review::rounds`] on what is recorded. An answer is saved before anything is done with
//! it, so a run that is killed asks again only for what nobody had answered.

mod asking; // asks the reviewer and keeps the answer
mod plan; // the review of the plan
mod result; // the review of the result

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::task::state::{Judged, Signal};

/// Tells whether the configuration has this reviewed, and there is something to be.
pub(crate) fn is_due(claim: &Claim, judged: Judged) -> bool {
    let config = &claim.services.settings.review.config;
    match judged {
        Judged::Plan => config.plan.enabled && claim.record.planned.plan.is_some(),
        Judged::Result => config.result.enabled,
    }
}

/// Saves each judgement in the record. Ends with [`Signal::Finished`] when the plan or result is
/// used, and with [`Signal::RevisionNeeded`] when it is to be made better.
pub(crate) async fn review(run: &mut Run, judged: Judged) -> Result<Signal, Interruption> {
    match judged {
        Judged::Plan => plan::review(run).await,
        Judged::Result => result::review(run).await,
    }
}
