//! Whether a result may be delivered without a person, while an operator has switched that on.

use crate::agent::claim::Claim;
use crate::agent::record::hold_reason::{HoldReason, HoldReasons};
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::approval::automatic::{Obstacle, Started, WaitingResult, obstacles};
use crate::approval::config::TaskType;
use crate::approval::difference::Circumstances;
use crate::forge::Item;
use crate::markdown::code::code;
use crate::repository::CommitId;
use crate::repository::mirror::Mirror;

/// The outcome for one result.
pub(crate) enum Outcome {
    /// It is not switched on.
    Off,
    /// A person must allow the result, for these reasons.
    Held(Vec<String>),
    Passed(Started),
}

/// Judges `base..head`, which is held for `reasons`. What people have written until this moment
/// counts: one who switches automatic approval off is heard first.
pub(crate) async fn judge(
    run: &mut Run,
    mirror: &Mirror,
    (base, head): (&CommitId, &CommitId),
    reasons: &HoldReasons,
) -> Result<Outcome, Interruption> {
    let store = run.claim.services.store.clone();
    let is_enabled = run.claim.services.settings.approval.auto_approve.enabled;
    if !is_enabled || store.automatic_approval().await?.is_none() {
        return Ok(Outcome::Off);
    }
    run.inbox.listen_now().await;
    let Some(item) = run.reporter.item(&mut run.claim).await? else {
        return Ok(Outcome::Off);
    };
    let difference = mirror.changes(base, head).await?;
    let result = WaitingResult {
        task: task_type(&item),
        tools: &run.claim.record.worked.outside_tools,
        difference: &difference,
        circumstances: circumstances(&run.claim, &item, reasons),
        is_held: reasons.shown.iter().any(|reason| *reason != HoldReason::Always),
    };
    let found = obstacles(&run.claim.services.settings.approval, &result);
    if !found.is_empty() {
        let said = found.iter().map(|obstacle| written(&run.claim, obstacle));
        return Ok(Outcome::Held(said.collect()));
    }
    // Asked once more, after all that took time.
    Ok(store.automatic_approval().await?.map_or(Outcome::Off, Outcome::Passed))
}

fn task_type(item: &Item) -> TaskType {
    match &item.change {
        Some(_) => TaskType::Change,
        None => TaskType::Issue,
    }
}

fn circumstances(claim: &Claim, item: &Item, reasons: &HoldReasons) -> Circumstances {
    let is_secret = |reason: &HoldReason| matches!(reason, HoldReason::Secret { .. } | HoldReason::Name { .. });
    let settings = &claim.services.settings;
    let limit = settings.approval.cost_limit_usd;
    let cost = claim.record.cost(&settings.prices).unwrap_or_default();
    Circumstances {
        has_secrets: reasons.shown.iter().any(is_secret) || reasons.more.secrets > 0,
        is_public: item.is_public,
        is_over_cost_limit: limit.is_some_and(|limit| cost > limit),
    }
}

fn written(claim: &Claim, obstacle: &Obstacle) -> String {
    match obstacle.about() {
        Some(about) => {
            let about = claim.services.redactor.clean(about).into_string();
            format!("{obstacle}: {}", code(&about))
        }
        None => obstacle.to_string(),
    }
}
