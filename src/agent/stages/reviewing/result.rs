//! The review of a result: the difference, with the task and the outcome of the checks.

use crate::agent::approval::result_guard;
use crate::agent::claim::Claim;
use crate::agent::prompt;
use crate::agent::prompt::reviews::{self, ResultToReview};
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::stages::reviewing::asking::{self, Matter};
use crate::agent::stages::working;
use crate::agent::workspace::open;
use crate::agent::workspace::snapshots;
use crate::agent::workspace::source;
use crate::evidence::check::Checked;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;
use crate::review::document::Document;
use crate::review::rounds::Next;
use crate::reviewer::config::OnUnreadyResult;
use crate::task::state::{Judged, Signal};

/// Maximum bytes of a difference that are read.
const LARGEST_DIFFERENCE: usize = 4 * 1024 * 1024;

/// Has the result judged, and decides whether it is delivered, worked on again or given up.
pub(super) async fn review(run: &mut Run) -> Result<Signal, Interruption> {
    let judgements = &mut run.claim.record.reviewed;
    if judgements.result.is_sent_back() && judgements.sent_back_at == Some(run.claim.record.worked.turns) {
        // The model was told, and the process ended before the next state was saved.
        return Ok(Signal::RevisionNeeded);
    }
    judgements.result_unready = None;
    run.inbox.listen_when_due().await;
    if run.claim.record.delivered.head.is_none() {
        // Of an earlier version, which committed nothing where there are no checks.
        open::ensure_open(run).await?;
        snapshots::commit_result(run).await?;
    }
    let (Some(base), Some(head)) = (
        run.claim.record.planned.base.clone(),
        run.claim.record.delivered.head.clone(),
    ) else {
        return Ok(Signal::Finished);
    };
    if !run.claim.record.has_changes() {
        return Ok(Signal::Finished);
    }
    let mirror = source::mirror_at_hand(run).await?;
    let reviewer = asking::reviewer(&run.claim)?;
    let matter = Matter {
        judged: Judged::Result,
        document: document(&run.claim, &mirror, (base.pushed_up_to(), &head), reviewer.room()).await?,
        place: (&mirror, &head),
        commands: checks(&run.claim).iter().map(|check| check.command.clone()).collect(),
        criteria: criteria(&run.claim),
    };
    match asking::decide(&mut run.claim, &reviewer, &matter).await? {
        Next::Pass => Ok(Signal::Finished),
        Next::Revise => send_back(run).await,
        Next::GiveUp(why) => {
            let reason = asking::why_unready(&mut run.claim, Judged::Result, &why);
            give_up(run, &mirror, (base.pushed_up_to(), &head), reason).await
        }
        Next::Ask => Err(Interruption::failed("the review of the result was not recorded")),
    }
}

/// Gives the model of the work the last review.
async fn send_back(run: &mut Run) -> Result<Signal, Interruption> {
    open::ensure_open(run).await?;
    let target = asking::rules(&run.claim, Judged::Result).target_score;
    let last = run.claim.record.reviewed.result.rounds().last();
    let words = last.map_or_else(String::new, |round| reviews::told(&round.opinion, target));
    let text = reviews::work_on(&prompt::fence(run.claim.lease.run), &words);
    working::send_back(run, &text, |record| {
        record.reviewed.result.send_back();
        record.reviewed.sent_back_at = Some(record.worked.turns);
    })
    .await?;
    Ok(Signal::RevisionNeeded)
}

/// Does what the configuration says of a result that did not pass.
async fn give_up(
    run: &mut Run,
    mirror: &Mirror,
    range: (&CommitId, &CommitId),
    reason: String,
) -> Result<Signal, Interruption> {
    let is_local = run.claim.record.request.local.is_some();
    let on_unready = run.claim.services.settings.review.config.result.on_unready;
    let follows = match on_unready {
        OnUnreadyResult::Draft => "draft",
        OnUnreadyResult::Ask => "ask",
        OnUnreadyResult::Fail => "fail",
    };
    asking::note_unready(&mut run.claim, Judged::Result, &reason, follows);
    match on_unready {
        OnUnreadyResult::Fail => Err(Interruption::failed(format!(
            "the result did not pass its review: {reason} (review.result.on_unready)"
        ))),
        // A local task's result is looked at by the person who waits for it.
        OnUnreadyResult::Ask if !is_local => {
            result_guard::ask_about_review(&mut run.claim, mirror, range, reason).await?;
            Ok(Signal::ApprovalNeeded)
        }
        OnUnreadyResult::Ask | OnUnreadyResult::Draft => {
            run.claim.warn(format!("The result did not pass its review: {reason}."));
            run.claim.record.reviewed.result_unready = Some(reason);
            Ok(Signal::Finished)
        }
    }
}

/// Returns the difference with what is known of it. Without secrets, as it is saved: in the next
/// process it must be the same document.
async fn document(
    claim: &Claim,
    mirror: &Mirror,
    (base, head): (&CommitId, &CommitId),
    room: usize,
) -> Result<Document, Interruption> {
    let clean = |text: &str| claim.services.redactor.clean(text).into_string();
    let (difference, _) = mirror.diff(base, head, LARGEST_DIFFERENCE).await?;
    // Ids of contents say nothing to a reader. Lines of the contents have a prefix.
    let difference: String = clean(&difference)
        .split_inclusive('\n')
        .filter(|line| !line.starts_with("index "))
        .collect();
    Ok(reviews::result(&ResultToReview {
        fence: &prompt::fence(claim.lease.run),
        task: &clean(&claim.record.planned.task_text),
        criteria: &criteria(claim),
        checks: checks(claim),
        difference: &difference,
        room,
    }))
}

fn checks(claim: &Claim) -> &[Checked] {
    &claim.record.verified.checks
}

fn criteria(claim: &Claim) -> Vec<String> {
    let plan = claim.record.planned.plan.as_ref();
    plan.map_or_else(Vec::new, |plan| plan.goal_understanding.success_criteria.clone())
}
