//! What the planner is told when its plan was sent back by a review.

use std::borrow::Cow;

use crate::agent::claim::Claim;
use crate::agent::prompt;
use crate::agent::prompt::reviews;
use crate::agent::record::interruption::Interruption;
use crate::agent::text::reviews::target;

/// Returns the task, with the plan that there is and what is wrong with it.
pub(super) fn task(claim: &Claim) -> Result<Cow<'_, str>, Interruption> {
    let (planned, reviewed) = (&claim.record.planned, &claim.record.reviewed);
    let Some(plan) = planned.plan.as_ref().filter(|_| reviewed.is_plan_sent_back()) else {
        return Ok(Cow::Borrowed(&planned.task_text));
    };
    let words = match (reviewed.faults.last(), reviewed.plan.rounds().last()) {
        (Some(faults), _) if reviewed.is_plan_faulty => reviews::faults(faults),
        (_, Some(round)) => {
            let target = target(claim.services.settings.review.config.plan.target_score);
            reviews::told(&round.opinion, target)
        }
        (_, None) => String::new(),
    };
    let plan = serde_json::to_string_pretty(plan).map_err(|error| Interruption::failed(error.to_string()))?;
    let fence = prompt::fence(claim.lease.run);
    Ok(Cow::Owned(reviews::plan_anew(
        &fence,
        &planned.task_text,
        &plan,
        &words,
    )))
}
