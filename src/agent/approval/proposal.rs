//! The parts of a run that a plan's approval covers, and their description for people, from the
//! record and the configuration as they are now.

use serde_json::Value;

use crate::agent::claim::Claim;
use crate::agent::prompt::named_files;
use crate::agent::record::redaction;
use crate::agent::workspace::open;
use crate::agent::workspace::set_up;
use crate::approval::digest::Digest;
use crate::approval::proposal::{Bound, Egress, Estimate, Part, expected_tokens};
use crate::conversation::Usage;
use crate::egress::Policy;
use crate::environment::{During, NetworkMode};
use crate::llm::config::role::Role;
use crate::plain::counted;
use crate::plan::Plan;
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};

/// Most files of the project among which those are looked for that the plan names.
const MOST_FILES: usize = 100_000;
/// Most files that are told.
const MOST_NAMED: usize = 20;

/// Returns digests of all that an approval of the current plan covers. The plan counts as it is
/// saved, without secrets, so that the next process finds the same.
pub(crate) fn bound(claim: &Claim) -> Bound {
    let texts = [
        (Part::Plan, vec![plan_text(claim, claim.record.planned.plan.as_ref())]),
        (Part::SetUp, set_up_commands(claim)),
        (Part::Environment, environment_parts(claim)),
        (Part::Egress, vec![written(&egress(claim))]),
        (Part::Budget, budget(claim)),
        (Part::Allowance, allowance(claim)),
    ];
    Bound::of(texts.into_iter().map(|(part, texts)| {
        let texts: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        (part, Digest::of(&texts))
    }))
}

/// Returns the digest of a plan, as it would be bound.
pub(crate) fn digest(claim: &Claim, plan: &Plan) -> Digest {
    Digest::of(&[plan_text(claim, Some(plan)).as_bytes()])
}

fn plan_text(claim: &Claim, plan: Option<&Plan>) -> String {
    let mut plan = serde_json::to_value(plan).unwrap_or_default();
    redaction::clean_words(&claim.services.redactor, &mut plan);
    plan.to_string()
}

/// Returns the set-up commands, without secrets.
pub(crate) fn set_up_commands(claim: &Claim) -> Vec<String> {
    let clean = |command: String| claim.services.redactor.clean(&command).into_string();
    set_up::set_up_commands(claim).into_iter().map(clean).collect()
}

/// Returns name and image of the environment; empty if the configuration has it no more.
pub(crate) fn environment(claim: &Claim) -> (String, String) {
    open::environment(claim).map_or_else(
        |_| (String::new(), String::new()),
        |(name, environment)| (name, environment.image),
    )
}

fn environment_parts(claim: &Claim) -> Vec<String> {
    let (name, image) = environment(claim);
    let config = &claim.services.containers.config;
    let services = config.services_of(&name);
    let services: Vec<String> = services
        .map(|(name, service)| format!("{name} {}", service.image))
        .collect();
    [vec![name, image, config.runtime.clone()], services].concat()
}

/// Returns what programs in the run's container may reach.
pub(crate) fn egress(claim: &Claim) -> Egress {
    let config = &claim.services.containers.config;
    match config.network.mode {
        NetworkMode::None => Egress::Nothing,
        NetworkMode::Open => Egress::Everything,
        NetworkMode::Allowlist => {
            let policy = open::environment(claim).ok();
            let policy = policy.and_then(|(_, environment)| config.policy(&environment));
            let hosts: Vec<String> = policy.iter().flat_map(Policy::named).collect();
            if hosts.is_empty() {
                return Egress::Nothing;
            }
            Egress::Hosts {
                hosts,
                only_during_set_up: config.network.during == During::Setup,
            }
        }
    }
}

fn written(egress: &Egress) -> String {
    serde_json::to_value(egress).unwrap_or(Value::Null).to_string()
}

/// Returns the limits of the run by the configuration.
pub(crate) fn budget(claim: &Claim) -> Vec<String> {
    let settings = &claim.services.settings;
    let budget = &settings.budget;
    let limits = [
        budget.tokens.map(|tokens| counted(tokens, "token")),
        budget.minutes.map(|minutes| counted(minutes, "minute")),
        budget.cost_usd.map(|cost| format!("${cost:.2}")),
        Some(counted(settings.max_turns, "model turn")),
    ];
    limits.into_iter().flatten().collect()
}

/// Returns the tokens that a person has allowed beyond the budget.
pub(crate) fn allowance(claim: &Claim) -> Vec<String> {
    let allowed = claim.record.waiting.allowance.as_ref();
    let allowed = allowed.map(|allowance| format!("{} allowed since", counted(allowance.tokens, "more token")));
    allowed.into_iter().collect()
}

/// Returns what the work on the plan may take, with what was used so far.
pub(crate) fn estimate(claim: &Claim, plan: &Plan) -> Estimate {
    let worker = claim.model(Role::Worker);
    let subtasks = plan.task_decomposition.subtasks.len();
    let (input, output) = expected_tokens(subtasks, worker.window());
    let usage = Usage {
        input,
        output,
        ..Usage::default()
    };
    let prices = &claim.services.settings.prices;
    let so_far = claim.record.cost(prices).unwrap_or_default();
    Estimate {
        tokens: input.saturating_add(output),
        cost_usd: prices.cost([(worker.name(), &usage)]).map(|cost| cost + so_far),
    }
}

/// Returns the files of the project that the plan names.
pub(crate) async fn files(mirror: &Mirror, base: &CommitId, plan: &Plan) -> Result<Vec<String>, RepositoryError> {
    let (files, _) = mirror.files(base, MOST_FILES).await?;
    let paths: Vec<String> = files.into_iter().map(|file| file.path).collect();
    Ok(named_by(plan, &paths))
}

/// Returns those of `paths` that the plan names: first those that it cites as its evidence, then
/// those in its words and commands.
fn named_by(plan: &Plan, paths: &[String]) -> Vec<String> {
    let (goal, steps) = (&plan.goal_understanding, &plan.task_decomposition);
    let mut text: Vec<&str> = vec![
        &goal.main_objective,
        &plan.comment,
        &steps.reasoning,
        &goal.context_analysis,
    ];
    text.extend(steps.subtasks.iter().map(|subtask| subtask.description.as_str()));
    for action in &plan.action_plan.actions {
        text.extend([action.purpose.as_str(), action.expected_outcome.as_str()]);
    }
    text.extend(
        goal.success_criteria
            .iter()
            .chain(&goal.constraints)
            .map(String::as_str),
    );
    if let Some(environment) = &plan.selected_environment {
        text.push(&environment.reasoning);
        text.extend(environment.setup_commands.iter().map(String::as_str));
    }
    text.extend(plan.verification.iter().map(|check| check.command.as_str()));
    text.push(&plan.test_command);
    let text = text.join("\n");
    let cited = plan.evidence.iter().map(|citation| citation.path.as_str());
    let cited = cited.filter(|cited| paths.iter().any(|path| path == cited));
    let mut named: Vec<&str> = Vec::new();
    for path in cited.chain(named_files::all_named(&text, paths)) {
        if !named.contains(&path) {
            named.push(path);
        }
    }
    named.into_iter().take(MOST_NAMED).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::conversation::Reply;
    use crate::plan;

    #[test]
    fn a_file_is_named_by_evidence_words_and_commands() {
        let paths = [
            "a.py",
            "b.py",
            "c.py",
            "d.py",
            "e.py",
            "calc.py",
            "test_calc.py",
            "other.py",
        ];
        let paths = paths.map(str::to_owned);
        let plan = json!({
            "phase": "planning",
            "goal_understanding": {
                "main_objective": "Mend the mean",
                "success_criteria": ["a.py has a mean", "The mean in calc.py is right"],
                "constraints": ["leave b.py alone"],
                "context_analysis": "c.py calls it",
            },
            "task_decomposition": { "reasoning": "d.py is next to it", "subtasks": [{ "id": 1, "description": "mend it" }] },
            "selected_environment": { "name": "python", "setup_commands": ["python e.py"] },
            "verification": [{ "command": "pytest -q test_calc.py" }],
            "evidence": [{ "path": "calc.py", "lines": "5-6" }, "gone.py:1", "calc.py:9"],
        });
        let plan = plan::read(&Reply {
            text: plan.to_string(),
            ..Reply::default()
        })
        .unwrap();
        assert_eq!(
            named_by(&plan, &paths),
            ["calc.py", "d.py", "c.py", "a.py", "b.py", "e.py", "test_calc.py"]
        );
    }
}
