//! Gives a request that was opened what the configuration wants on each: labels, and the people who
//! are to look at it.
//!
//! Once: what people take off later stays off. Whom the forge does not take is named in a warning,
//! and the work is delivered all the same.

use std::sync::Arc;

use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::stages::delivering::in_step::unless_refused;
use crate::forge::{Forge, ForgeError};
use crate::task::id::TaskId;

/// Puts labels, assignees and reviewers on the request of the run, unless people closed or merged
/// it while the run waited. Idempotent.
pub(super) async fn furnish(run: &mut Run, forge: &Arc<dyn Forge>) -> Result<(), Interruption> {
    let delivered = &run.claim.record.delivered;
    let number = delivered.change.as_ref().map(|change| change.number);
    let number = number.filter(|_| !delivered.is_furnished);
    let Some(change) = number.and_then(|number| forge.change_id(&run.claim.lease.task, number)) else {
        return Ok(());
    };
    let wanted = run.claim.services.settings.change_requests.clone();
    let is_nothing = wanted.labels.is_empty() && wanted.assignees.is_empty() && wanted.reviewers.is_empty();
    if is_nothing || (run.claim.was_taken_up && !is_open(forge, &change).await?) {
        return Ok(());
    }
    for label in &wanted.labels {
        let put = forge.add_label(&change, label).await;
        unless_refused(run, put)?;
    }
    if !wanted.assignees.is_empty() {
        let assigned = forge.assign(&change, &wanted.assignees).await;
        let left_out = unless_refused(run, assigned)?;
        warn(run, left_out, "change_requests.assignees");
    }
    if !wanted.reviewers.is_empty() {
        let asked = forge.ask_for_review(&change, &wanted.reviewers).await;
        let left_out = unless_refused(run, asked)?;
        warn(run, left_out, "change_requests.reviewers");
    }
    run.claim.record.delivered.is_furnished = true;
    run.claim.save().await
}

async fn is_open(forge: &Arc<dyn Forge>, change: &TaskId) -> Result<bool, Interruption> {
    match forge.item(change).await {
        Ok(change) => Ok(change.is_open),
        Err(ForgeError::Gone { .. }) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn warn(run: &mut Run, left_out: Option<Vec<String>>, key: &str) {
    let names = left_out.unwrap_or_default().join(", ");
    if !names.is_empty() {
        run.claim.warn(format!(
            "the forge does not take everybody whom {key} names: {names}; see that they may read the repository, and are spelled \
             as the forge does"
        ));
    }
}
