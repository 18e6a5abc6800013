//! Selects the environment of a run.

use crate::agent::claim::Claim;
use crate::agent::workspace::open;
use crate::plan;

/// Selects the environment: a person's choice wins; an unknown or missing name is replaced by the
/// default, and people are told.
pub(crate) fn choose_environment(claim: &mut Claim) {
    let local = claim.record.request.local.as_ref();
    let named = local.and_then(|local| local.environment.clone());
    let by_rules = if named.is_none() { chosen_by_rules(claim) } else { None };
    let config = &claim.services.containers.config;
    let default = config.default_environment.clone();
    let (name, note) = match (named.or(by_rules), &claim.record.planned.plan) {
        (Some(name), _) => (name, None),
        (None, Some(plan)) => {
            let known: Vec<&str> = config.environments.keys().map(String::as_str).collect();
            let choice = plan::choose_environment(plan, &known, &default);
            (choice.name, choice.note)
        }
        (None, None) => (default, None),
    };
    if let Some(note) = note {
        claim.warn(note);
    }
    tell_unused_set_up(claim);
    claim.record.planned.environment = Some(name);
}

/// Tells people of set-up commands in the project's rules that the configuration does not allow.
fn tell_unused_set_up(claim: &mut Claim) {
    let rules = &claim.record.planned.rules.environment;
    let is_allowed = claim.services.containers.config.by_rules.setup_commands;
    if is_allowed || rules.setup_commands.is_empty() {
        return;
    }
    let note = format!(
        "The set-up commands of `{}` were not run: the configuration (`command_executor.by_rules.setup_commands`) does not allow them.",
        rules.source
    );
    claim.warn(note);
}

/// Returns the environment that the project's rules choose, if the configuration allows it; people
/// are told of a choice that is not allowed.
fn chosen_by_rules(claim: &mut Claim) -> Option<String> {
    let wanted = claim.record.planned.rules.environment.clone();
    let own = open::project_environment(claim).map(|(name, _)| name);
    if let (Some(image), None) = (&wanted.image, &own) {
        claim.warn(format!(
            "`{}` names the image `{image}`, which the configuration (`command_executor.by_rules.images`) does not allow.",
            wanted.source
        ));
    }
    let config = &claim.services.containers.config;
    let is_known = wanted
        .name
        .as_ref()
        .is_none_or(|name| config.environments.contains_key(name));
    if let (Some(name), false) = (&wanted.name, is_known) {
        let known: Vec<&str> = config.environments.keys().map(String::as_str).collect();
        claim.warn(format!(
            "`{}` names the environment `{name}`, which is not configured (there are: {}).",
            wanted.source,
            known.join(", ")
        ));
        return own;
    }
    own.or(wanted.name)
}
