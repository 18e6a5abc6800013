//! The orders that answer the open question, whichever it is.

use crate::agent::approval::plan_question::{self, Denied};
use crate::agent::approval::question;
use crate::agent::claim::Claim;
use crate::agent::record::message::Order;
use crate::approval::digest::Beginning;
use crate::markdown::compose::Page;
use crate::task::state::{Judged, Signal, State};

const PLAN_WAITS: State = State::AwaitingApproval(Judged::Plan);

/// Applies an approval; returns whether the run resumes, and the reply.
pub(crate) fn hear_approval(claim: &mut Claim, order: &Order, given: Option<&Beginning>) -> (bool, Page) {
    match claim.state {
        PLAN_WAITS => plan_question::hear_approval(claim, order, given),
        _ => question::hear_approval(claim, order, given),
    }
}

/// Applies a denial; returns the reply if it does not count.
pub(crate) fn hear_denial(
    claim: &mut Claim,
    order: &Order,
    given: Option<&Beginning>,
    reason: Option<&str>,
) -> Result<Denied, Page> {
    match claim.state {
        PLAN_WAITS => plan_question::hear_denial(claim, order, given, reason),
        _ => question::hear_denial(claim, order, given, reason).map(|()| Denied::Ends),
    }
}

/// Returns the signal by which a run goes on whose question was answered.
pub(crate) fn signal(claim: &Claim) -> Signal {
    match claim.state {
        PLAN_WAITS if plan_question::is_revision_wanted(claim) => Signal::RevisionNeeded,
        _ => Signal::Approved,
    }
}
