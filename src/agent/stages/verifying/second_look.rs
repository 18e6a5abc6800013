//! The second look: a model that says done, and whose result fails no check, is shown once more
//! what the task asks for, beside what it changed.
//!
//! A task often asks for a second thing that no visible test holds, and a small model is done when
//! the tests pass. It costs one request. Where success criteria of a plan or a reviewer judge the
//! result, they do so better.

use std::sync::Arc;

use crate::agent::claim::Claim;
use crate::agent::dialogue::ask;
use crate::agent::prompt;
use crate::agent::prompt::second_look;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::settings::AskTwice;
use crate::evidence::demands::Demands;
use crate::evidence::difference;
use crate::journal::fact::Fact;
use crate::llm::config::Edits;
use crate::repository::CommitId;

/// Maximum size of a diff whose lines are counted, in bytes.
const LARGEST_DIFFERENCE: usize = 1024 * 1024;

/// Returns the question for the model, if it is due; it is recorded then, and never due again.
pub(super) async fn question(run: &mut Run, head: &CommitId) -> Result<Option<String>, Interruption> {
    let demands = Demands::of(&run.claim.record.planned.question);
    if !is_due(&run.claim) || !demands.are_several() || !may_ask(&run.claim).await {
        return Ok(None);
    }
    let project = Arc::clone(&run.workspace.opened()?.project);
    let (diff, _) = project.mirror().diff(project.base(), head, LARGEST_DIFFERENCE).await?;
    let touched = difference::touched(&super::without_secrets(&run.claim.services.redactor, &diff));
    if touched.is_empty() {
        return Ok(None);
    }
    run.claim.record.verified.asked_twice_at = Some(run.claim.record.worked.turns);
    run.claim.note(Fact::AskedTwice);
    let fence = prompt::fence(run.claim.lease.run);
    Ok(Some(second_look::question(&fence, &demands, &touched)))
}

fn is_due(claim: &Claim) -> bool {
    let (settings, record) = (&claim.services.settings, &claim.record);
    let verification = &settings.planning.verification;
    let is_wanted = match verification.ask_twice {
        AskTwice::Auto => settings.edits == Edits::Whole || record.worked.whole_files,
        AskTwice::Always => true,
        AskTwice::Never => false,
    };
    let has_criteria = record
        .planned
        .plan
        .as_ref()
        .is_some_and(|plan| !plan.goal_understanding.success_criteria.is_empty());
    let is_judged = has_criteria || settings.review.config.result.enabled;
    let fails_as_before = record.verified.checks.iter().any(super::fails_as_before);
    // What a later round is asked for stands in comments on the request.
    let is_first_round = record.request.round.is_none();
    let was_asked = record.verified.asked_twice_at.is_some();
    is_wanted && verification.max_rounds > 0 && is_first_round && !was_asked && !is_judged && !fails_as_before
}

/// Tells whether the limits allow another request: what is finished is not held up for it.
async fn may_ask(claim: &Claim) -> bool {
    ask::check_limits(claim).await.is_ok()
}
