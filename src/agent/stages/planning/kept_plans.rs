//! Plans that are made once for the same input.
//!
//! A model with `temperature: 0` and a `seed` is meant to give the same plan for the same input. So
//! a plan whose run was done is kept under the fingerprint of all that the planner was given, and
//! used again for the same. Whoever uses it takes it away, and only a run that is done brings it
//! back: after one that failed, was denied or stopped, whatever happened in between, the model is
//! asked anew.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::agent::claim::Claim;
use crate::agent::prompt;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction;
use crate::agent::record::sections::KEPT_PLANS;
use crate::llm::config::role::Role;
use crate::plan::Plan;
use crate::store::{Store, StoreError};
use crate::task::state::State;

/// Number of plans that are kept; the oldest go first.
const MOST: usize = 100;
/// How long a plan is kept that nobody uses.
const LONGEST: TimeDelta = TimeDelta::days(90);

#[derive(Serialize, Deserialize)]
struct Kept {
    at: DateTime<Utc>,
    plan: Plan,
}

/// Returns the fingerprint of what the planner is given: prompts, the files that it can look at,
/// and the model. `None` where the model may give another plan each time.
pub(crate) fn fingerprint(claim: &Claim, system: &str, task: &str, tree: &str) -> Option<String> {
    let model = claim.model(Role::Planner).reproducible()?;
    // Each run has its own name for blocks of text from outside.
    let fence = prompt::fence(claim.lease.run);
    let mut digest = Sha256::new();
    for part in [&model, system, task, tree] {
        let part = part.replace(&fence, "data");
        digest.update(part.len().to_le_bytes());
        digest.update(part);
    }
    Some(format!("{:x}", digest.finalize()))
}

/// Returns the plan that was kept for this input, if there is one, and takes it out of the store.
pub(crate) async fn take(claim: &Claim, fingerprint: &str) -> Result<Option<Plan>, Interruption> {
    let store = &claim.services.store;
    let name = name(fingerprint);
    let Some(text) = store.remembered(&name).await? else {
        return Ok(None);
    };
    store.erase_remembered(&name).await?;
    // One of another version is made again.
    let kept = serde_json::from_str::<Kept>(&text).ok();
    let most = claim.services.settings.planning.max_subtasks;
    Ok(kept.map(|kept| kept.plan).filter(|plan| plan.validate(most).is_ok()))
}

/// Keeps the plan of a run that was done, and forgets that of one that was not. If the store cannot
/// be written, the next run with the same input makes a plan of its own.
pub(crate) async fn settle(claim: &Claim) {
    let planned = &claim.record.planned;
    let Some(fingerprint) = &planned.input else { return };
    if !claim.state.is_final() || !claim.services.settings.planning.reuse {
        return;
    }
    // A plan that was revised was not good enough.
    let is_good = claim.state == State::Done && planned.former_plans.is_empty();
    let store = &claim.services.store;
    let settled = match planned.plan.as_ref().filter(|_| is_good) {
        Some(plan) => keep(claim, fingerprint, plan).await,
        None => store.erase_remembered(&name(fingerprint)).await,
    };
    if let Err(error) = settled {
        tracing::warn!(task = %claim.lease.task, "the plan could not be kept: {error}");
    }
}

/// Returns a digest of a plan, by which equal ones are known.
pub(crate) fn digest(plan: &Plan) -> String {
    let text = serde_json::to_vec(plan).unwrap_or_default();
    format!("{:x}", Sha256::digest(text))
}

async fn keep(claim: &Claim, fingerprint: &str, plan: &Plan) -> Result<(), StoreError> {
    let kept = Kept {
        at: Utc::now(),
        plan: plan.clone(),
    };
    let Ok(text) = serde_json::to_string(&kept) else {
        return Ok(());
    };
    // A plan with a secret in it would be another one without it.
    if redaction::is_changed(plan, &claim.services.redactor) {
        return Ok(());
    }
    let store = &claim.services.store;
    store.remember(&name(fingerprint), &text).await?;
    drop_old(store).await
}

async fn drop_old(store: &Store) -> Result<(), StoreError> {
    let mut kept: Vec<(DateTime<Utc>, String)> = Vec::new();
    for (name, text) in store.remembered_as(KEPT_PLANS).await? {
        let at = serde_json::from_str::<Kept>(&text).map_or(DateTime::UNIX_EPOCH, |kept| kept.at);
        kept.push((at, name));
    }
    kept.sort_unstable_by(|one, other| other.cmp(one));
    let oldest = Utc::now() - LONGEST;
    for (place, (at, name)) in kept.into_iter().enumerate() {
        if place >= MOST || at < oldest {
            store.erase_remembered(&name).await?;
        }
    }
    Ok(())
}

fn name(fingerprint: &str) -> String {
    format!("{KEPT_PLANS}{fingerprint}")
}
