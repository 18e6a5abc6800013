//! The question whether a plan may be carried out: when it is due, how it is put, and the orders
//! that answer it.

use crate::agent::approval::proposal;
use crate::agent::approval::question::is_later;
use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::message::Order;
use crate::agent::record::{Paused, PausedBy};
use crate::agent::run::Run;
use crate::agent::text::replies;
use crate::agent::text::waits::decided;
use crate::agent::workspace::source;
use crate::approval::digest::Beginning;
use crate::approval::proposal::{Denial, HeldPlan, Part, PlanGrant, Reason};
use crate::approval::{Question, Word};
use crate::journal::fact::Fact;
use crate::markdown::compose::Page;
use crate::plan::Plan;
use crate::task::state::{Signal, State};

/// Number of denials after which another one ends the run.
const MOST_DENIALS: usize = 1;

/// The effect of a denial that counts.
pub(crate) enum Denied {
    /// The run ends.
    Ends,
    /// The run goes on, and makes another plan or keeps the one it had.
    GoesOn(Page),
}

/// Returns true if the plan waits for a person's approval, and puts the question: if it was never
/// approved and is due for it, or if it is not what was approved. Nobody is asked for a local task:
/// whoever gave it waits for the command to end.
pub(crate) async fn needs_approval(run: &mut Run) -> Result<bool, Interruption> {
    let planned = &run.claim.record.planned;
    let Some(plan) = planned
        .plan
        .as_ref()
        .filter(|_| run.claim.record.request.local.is_none())
    else {
        return Ok(false);
    };
    let reason = match &planned.approval {
        Some(grant) if grant.covers(&proposal::bound(&run.claim)) => return Ok(false),
        Some(grant) => grant.reason.clone(),
        // A process that was killed had put the question.
        None => match held(&run.claim)
            .map(|held| held.reason.clone())
            .or_else(|| due(&run.claim, plan))
        {
            Some(reason) => reason,
            None => return Ok(false),
        },
    };
    put(run, reason).await?;
    Ok(true)
}

/// Returns why a plan that nobody approved waits, if it does.
fn due(claim: &Claim, plan: &Plan) -> Option<Reason> {
    let config = &claim.services.settings.approval;
    if config.asks_for_plans() {
        return Some(Reason::Configured);
    }
    let limit = config.cost_limit_usd?;
    let estimated = proposal::estimate(claim, plan).cost_usd?;
    (estimated > limit).then_some(Reason::Cost { estimated, limit })
}

/// Records the question that must be answered before the plan is carried out; the stage then ends
/// with [`Signal::ApprovalNeeded`]. An earlier question can no longer be answered then.
pub(crate) async fn put(run: &mut Run, reason: Reason) -> Result<Signal, Interruption> {
    let Some(plan) = run.claim.record.planned.plan.clone() else {
        return Err(Interruption::failed("there is no plan to approve"));
    };
    let now = proposal::bound(&run.claim);
    let before = held(&run.claim).cloned();
    // An approval of other parts than these counts for nothing, so it may stay in the record.
    let void = run.claim.record.planned.approval.as_ref();
    let is_void = void.is_some();
    let denials = run.claim.record.planned.denials.iter();
    let mut denied = denials.filter_map(|denial| denial.plan.as_ref());
    let was_denied = !is_void && denied.any(|denied| now.part(Part::Plan) == Some(denied));
    let changed = match (void, &before) {
        (Some(grant), _) => grant.bound.changed(&now),
        (None, Some(before)) => before.bound.changed(&now),
        (None, None) => Vec::new(),
    };
    let files = match &before {
        // A plan that waits stays as it is.
        Some(before) => before.files.clone(),
        None => named_files(run, &plan).await?,
    };
    let claim = &mut run.claim;
    let question = Question::new(now.digest(), "");
    claim.note(Fact::ApprovalRequested {
        id: question.id,
        digest: question.digest.as_str().to_owned(),
    });
    let at = question.at;
    let (environment, image) = proposal::environment(claim);
    let clean = |text: &str| claim.services.redactor.clean(text.trim()).into_string();
    let held = HeldPlan {
        question,
        bound: now,
        reason,
        changed,
        is_void,
        is_at_work: claim.state == State::Working
            || claim.record.prepared.is_repeated
            || before.is_some_and(|before| before.is_at_work),
        was_denied,
        goal: clean(&plan.goal_understanding.main_objective),
        steps: plan
            .ordered()
            .into_iter()
            .map(|subtask| clean(&subtask.description))
            .collect(),
        set_up: proposal::set_up_commands(claim),
        checks: plan.verification.iter().map(|check| clean(&check.command)).collect(),
        files,
        environment,
        image,
        egress: proposal::egress(claim),
        budget: [proposal::budget(claim), proposal::allowance(claim)].concat(),
        estimate: proposal::estimate(claim, &plan),
    };
    claim.record.waiting.paused = Some(Paused {
        by: PausedBy::Plan(Box::new(held)),
        at,
        saved: None,
    });
    claim.record.waiting.set_aside += 1;
    Ok(Signal::ApprovalNeeded)
}

async fn named_files(run: &mut Run, plan: &Plan) -> Result<Vec<String>, Interruption> {
    let Some(base) = run.claim.record.planned.base.as_ref().map(|base| base.commit.clone()) else {
        return Ok(Vec::new());
    };
    let mirror = source::mirror_at_hand(run).await?;
    Ok(proposal::files(&mirror, &base, plan).await?)
}

/// Puts the question of a waiting plan anew if what it covers has changed since, by the
/// configuration or by a larger budget; returns true if it did.
pub(crate) async fn renew_if_changed(run: &mut Run) -> Result<bool, Interruption> {
    let Some(held) = held(&run.claim) else {
        return Ok(false);
    };
    if decided(&run.claim.record).is_some() || held.bound == proposal::bound(&run.claim) {
        return Ok(false);
    }
    let reason = held.reason.clone();
    put(run, reason).await?;
    run.claim.save().await?;
    Ok(true)
}

/// Returns true if people have no comment with the open question about a plan.
pub(crate) fn is_unasked(claim: &Claim) -> bool {
    held(claim).is_some() && claim.comment(&claim.record.waiting.comment()).is_none()
}

/// Returns the open question about a plan.
pub(crate) fn held(claim: &Claim) -> Option<&HeldPlan> {
    match &claim.record.waiting.paused.as_ref()?.by {
        PausedBy::Plan(held) => Some(held),
        _ => None,
    }
}

/// Returns true if the planner is to make another plan.
pub(crate) fn is_revision_wanted(claim: &Claim) -> bool {
    let is_kept = claim.record.planned.refused_revision.is_some();
    held(claim).is_some_and(|held| !is_kept && is_denied(claim, held))
}

fn is_granted(claim: &Claim, held: &HeldPlan) -> bool {
    let approval = claim.record.planned.approval.as_ref();
    approval.is_some_and(|approval| approval.grant.id == held.question.id)
}

fn is_denied(claim: &Claim, held: &HeldPlan) -> bool {
    let mut denials = claim.record.planned.denials.iter();
    denials.any(|denial| denial.question == held.question.id)
}

/// Applies an approval; returns whether the run resumes, and the reply.
pub(crate) fn hear_approval(claim: &mut Claim, order: &Order, given: Option<&Beginning>) -> (bool, Page) {
    let Some(held) = held(claim).cloned() else {
        return (false, replies::NOTHING_TO_APPROVE.into());
    };
    if decided(&claim.record).is_some() {
        return (true, replies::ALREADY_DECIDED.into());
    }
    let changed = held.bound.changed(&proposal::bound(claim));
    if !changed.is_empty() {
        return (false, replies::plan_changed(&changed));
    }
    let word = Word {
        digest: given,
        is_later: is_later(claim, order, &held.question),
    };
    if let Err(refusal) = held.question.takes(word) {
        return (false, replies::not_approved(refusal, &held.question.digest));
    }
    let grant = held.question.granted(&order.by);
    claim.note(Fact::ApprovalGranted {
        id: grant.id,
        approver: grant.by.clone(),
        digest: grant.digest.as_str().to_owned(),
    });
    claim.record.planned.approval = Some(PlanGrant {
        grant,
        bound: held.bound,
        reason: held.reason,
    });
    (true, replies::PLAN_APPROVED.into())
}

/// Applies a denial; returns the reply if it does not count. It also takes an approval back on
/// which the run did not go on yet. The first one with a reason has the planner make another plan.
pub(crate) fn hear_denial(
    claim: &mut Claim,
    order: &Order,
    given: Option<&Beginning>,
    reason: Option<&str>,
) -> Result<Denied, Page> {
    let Some(held) = held(claim).cloned() else {
        return Err(replies::NOTHING_TO_APPROVE.into());
    };
    if is_denied(claim, &held) {
        return Err(replies::ALREADY_DECIDED.into());
    }
    let word = Word {
        digest: given,
        is_later: is_later(claim, order, &held.question),
    };
    held.question.takes(word).map_err(replies::not_denied)?;
    let reason = reason.map(|reason| claim.services.redactor.clean(reason).into_string());
    let denial = Denial {
        question: held.question.id,
        by: order.by.clone(),
        reason: reason.clone().unwrap_or_default(),
        plan: held.bound.part(Part::Plan).cloned(),
    };
    claim.note(Fact::ApprovalDenied {
        id: denial.question,
        approver: denial.by.clone(),
        digest: held.question.digest.as_str().to_owned(),
        reason: denial.reason.clone(),
    });
    let is_last = claim.record.planned.denials.len() >= MOST_DENIALS;
    claim.record.planned.denials.push(denial);
    if is_granted(claim, &held) {
        claim.record.planned.approval = None;
    }
    match reason.filter(|_| !is_last) {
        Some(_) if !held.is_at_work => Ok(Denied::GoesOn(replies::PLAN_DENIED.into())),
        Some(reason) if held.changed.contains(&Part::Plan) => Ok(keep_former_plan(claim, reason)),
        Some(_) | None => Ok(Denied::Ends),
    }
}

/// Has the plan stay that was carried out before a revision of it was refused; its approval is
/// still in the record.
fn keep_former_plan(claim: &mut Claim, reason: String) -> Denied {
    let planned = &mut claim.record.planned;
    let Some(former) = planned.former_plans.last().cloned() else {
        return Denied::Ends;
    };
    // The refused plan counts among the former ones: a model may revise only so often.
    planned.former_plans.extend(planned.plan.replace(former));
    planned.refused_revision = Some(reason);
    claim.note_plan();
    Denied::GoesOn(replies::REVISION_DENIED.into())
}
