//! The planner's task after its plan was sent back, by a review or by people.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::agent::approval::proposal;
use crate::agent::claim::Claim;
use crate::agent::prompt;
use crate::agent::prompt::denied_plan;
use crate::agent::prompt::reviews;
use crate::agent::record::interruption::Interruption;
use crate::agent::text::reviews::target;
use crate::plan::Plan;

/// Returns the task, with the plan that there is and what is wrong with it. A plan that goes back
/// for its review still has to settle what people did not approve in one before it.
pub(super) fn task(claim: &Claim) -> Result<Cow<'_, str>, Interruption> {
    let (planned, reviewed) = (&claim.record.planned, &claim.record.reviewed);
    let fence = prompt::fence(claim.lease.run);
    let Some(plan) = planned.plan.as_ref() else {
        return Ok(Cow::Borrowed(&planned.task_text));
    };
    if !reviewed.is_plan_sent_back() {
        return Ok(match planned.denials.last() {
            Some(denial) => Cow::Owned(planned.task_text.clone() + &denied_plan::of_planner(&fence, plan, denial)),
            None => Cow::Borrowed(&planned.task_text),
        });
    }
    let words = match (reviewed.faults.last(), reviewed.plan.rounds().last()) {
        (Some(faults), _) if reviewed.is_plan_faulty => reviews::faults(faults),
        (_, Some(round)) => {
            let target = target(claim.services.settings.review.config.plan.target_score);
            reviews::told(&round.opinion, target)
        }
        (_, None) => String::new(),
    };
    let plan = serde_json::to_string_pretty(plan).map_err(|error| Interruption::failed(error.to_string()))?;
    let mut task = reviews::plan_anew(&fence, &planned.task_text, &plan, &words);
    for denial in &planned.denials {
        let _ = write!(
            task,
            "\n\nPeople did not approve a plan before this one:\n<{fence}>\n{}\n</{fence}>",
            denial.reason.trim()
        );
    }
    Ok(Cow::Owned(task))
}

/// Returns the message about a plan that people denied already; `None` if it is another one.
pub(super) fn denied_again(claim: &Claim, plan: &Plan) -> Option<String> {
    let digest = proposal::digest(claim, plan);
    let mut denials = claim.record.planned.denials.iter().rev();
    let denial = denials.find(|denial| denial.plan.as_ref() == Some(&digest))?;
    Some(denied_plan::again(denial))
}
