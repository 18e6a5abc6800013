//! The servers of a run's local models: made ready before the work, and restarted when they fail.

use std::collections::BTreeMap;

use crate::agent::claim::Claim;
use crate::agent::readiness::{self, NotReady};
use crate::agent::record::interruption::Interruption;
use crate::journal::fact::Fact;
use crate::llm::config::role::Role;
use crate::llm::model::Model;
use crate::llm::models::Critic;

/// How long a run waits for a server that is out of order, at first.
const WAIT_MINUTES: i64 = 2;

/// Has the servers of the run's models load them, where the configuration says so.
///
/// # Errors
/// The run is postponed where a server is out of order, and fails where only the operator can help.
pub(crate) async fn ensure_ready(claim: &Claim) -> Result<(), Interruption> {
    for model in local_models(claim) {
        let readiness = claim.unless_stopped(readiness::ensure(&claim.services, &model)).await?;
        if let Some(text) = readiness.done {
            claim.note(Fact::Warned { text });
        }
        match readiness.missing {
            None => {}
            Some(NotReady::Lasts(reason)) => return Err(Interruption::failed(reason)),
            Some(NotReady::Passes(reason)) => return Err(Interruption::postponed(WAIT_MINUTES, reason)),
        }
    }
    Ok(())
}

/// Restarts the server of a model that could not be reached in the middle of the work, if the
/// configuration says how, so that it is there when the run goes on.
pub(crate) async fn restart_after_failure(claim: &Claim, name: &str) {
    let Some(health) = &claim.services.settings.health else {
        return;
    };
    let model = local_models(claim).into_iter().find(|model| model.name() == name);
    let Some(model) = model else { return };
    let restarted = claim
        .unless_stopped(readiness::restart(&claim.services, health, &model))
        .await;
    if let Ok(Some(told)) = restarted {
        claim.note(Fact::Warned { text: told });
    }
}

/// Returns the models of the run that are on servers of one's own, each once.
fn local_models(claim: &Claim) -> Vec<Model> {
    let models = [Role::Planner, Role::Worker, Role::Summarizer].map(|role| claim.model(role));
    let local = models.into_iter().chain(reviewer(claim)).filter(Model::is_kept_ready);
    let by_name: BTreeMap<String, Model> = local.map(|model| (model.name().to_owned(), model)).collect();
    by_name.into_values().collect()
}

/// Returns the model that reviews for the run, where one does and may.
fn reviewer(claim: &Claim) -> Option<Model> {
    let services = &claim.services;
    let review = &services.settings.review.config;
    if !review.plan.enabled && !review.result.enabled {
        return None;
    }
    match services.models.critic(claim.record.request.local_only.as_deref()) {
        Ok(Critic::Model(model)) => Some(model),
        Ok(Critic::Program(_)) | Err(_) => None,
    }
}
