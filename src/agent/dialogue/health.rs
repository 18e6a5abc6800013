//! The servers of a run's local models: made ready before the work, and restarted when they fail.

use std::collections::BTreeMap;

use crate::agent::claim::Claim;
use crate::agent::readiness::{self, NotReady};
use crate::agent::record::interruption::Interruption;
use crate::journal::fact::Fact;
use crate::llm::config::role::Role;
use crate::llm::model::Model;
use crate::llm::models::Critic;
use crate::task::state::{Judged, State};

/// How long a run waits for a server that is out of order, at first.
const WAIT_MINUTES: i64 = 2;

/// Has the servers of the run's models load them, where the configuration says so. Of a model that
/// only reviews it is noted that it is not ready: the review decides what becomes of a document
/// that nobody judges.
///
/// # Errors
/// The run is postponed where a server is out of order, and fails where only the operator can help.
pub(crate) async fn ensure_ready(claim: &Claim) -> Result<(), Interruption> {
    let working = by_name(working_models(claim));
    for model in working.values() {
        match make_ready(claim, model).await? {
            None => {}
            Some(NotReady::Lasts(reason)) => return Err(Interruption::failed(reason)),
            Some(NotReady::Passes(reason)) => return Err(Interruption::postponed(WAIT_MINUTES, reason)),
        }
    }
    for model in by_name(reviewer(claim)).values() {
        if !working.contains_key(model.name())
            && let Some(NotReady::Lasts(reason) | NotReady::Passes(reason)) = make_ready(claim, model).await?
        {
            claim.note(Fact::Warned {
                text: format!("the reviewer is not ready: {reason}"),
            });
        }
    }
    Ok(())
}

/// Has the server of a model load it, and returns why it is not ready.
async fn make_ready(claim: &Claim, model: &Model) -> Result<Option<NotReady>, Interruption> {
    let readiness = claim.unless_stopped(readiness::ensure(&claim.services, model)).await?;
    if let Some(text) = readiness.done {
        claim.note(Fact::Warned { text });
    }
    Ok(readiness.missing)
}

/// Restarts the server of a model that could not be reached in the middle of the work, if the
/// configuration says how, so that it is there when the run goes on.
pub(crate) async fn restart_after_failure(claim: &Claim, name: &str) {
    let Some(health) = &claim.services.settings.health else {
        return;
    };
    let models = by_name(working_models(claim).into_iter().chain(reviewer(claim)));
    let Some(model) = models.get(name) else { return };
    let restarted = claim
        .unless_stopped(readiness::restart(&claim.services, health, model))
        .await;
    if let Ok(Some(told)) = restarted {
        claim.note(Fact::Warned { text: told });
    }
}

fn working_models(claim: &Claim) -> [Model; 3] {
    [Role::Planner, Role::Worker, Role::Summarizer].map(|role| claim.model(role))
}

/// Returns those models that are on servers of one's own, each once.
fn by_name(models: impl IntoIterator<Item = Model>) -> BTreeMap<String, Model> {
    let local = models.into_iter().filter(Model::is_kept_ready);
    local.map(|model| (model.name().to_owned(), model)).collect()
}

/// Returns the model that reviews for the run, where one may and a review is still to come.
fn reviewer(claim: &Claim) -> Option<Model> {
    if !has_review_ahead(claim) {
        return None;
    }
    let models = &claim.services.models;
    match models.critic(claim.record.request.local_only.as_deref()) {
        Ok(Critic::Model(model)) => Some(model),
        Ok(Critic::Program(_)) | Err(_) => None,
    }
}

fn has_review_ahead(claim: &Claim) -> bool {
    let review = &claim.services.settings.review.config;
    match claim.state {
        State::Planning | State::Reviewing(Judged::Plan) => review.plan.enabled || review.result.enabled,
        State::Preparing | State::Working | State::Verifying | State::Reviewing(Judged::Result) => {
            review.result.enabled
        }
        State::Queued
        | State::AwaitingApproval(_)
        | State::AwaitingAnswer
        | State::Delivering
        | State::Paused(_)
        | State::Done
        | State::Stopped
        | State::Failed => false,
    }
}
