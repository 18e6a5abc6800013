//! The plan a model makes before it works, and how it is read.
//!
//! Reading is lenient where nothing is lost by it: ids may be numbers, lists may be single values,
//! optional sections may be missing, unknown fields are ignored, and a malformed environment is a
//! note, not an error. Faults that make work impossible (no subtasks, an unknown dependency, a
//! cycle) are reported to the model, all at once.

mod check;
pub mod evidence;
pub mod form;
mod lenient;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conversation::Reply;
use crate::conversation::decode::{self, Unreadable};
use evidence::Citation;

const FORM: &str = "Reply with exactly one JSON object: {\"phase\":\"planning\",\
    \"goal_understanding\":{\"main_objective\":...,\"success_criteria\":[...]},\
    \"task_decomposition\":{\"subtasks\":[{\"id\":...,\"description\":...,\"dependencies\":[...]}]},\
    \"action_plan\":{\"execution_order\":[...]},\"selected_environment\":{\"name\":...},\
    \"verification\":[{\"command\":...}],\"comment\":...}.";

/// The model's understanding of the task, the steps in their order, the environment, and the checks
/// that show that it worked.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    #[serde(deserialize_with = "lenient::or_default")]
    pub goal_understanding: GoalUnderstanding,
    pub task_decomposition: TaskDecomposition,
    #[serde(deserialize_with = "lenient::or_default")]
    pub action_plan: ActionPlan,
    pub selected_environment: Option<SelectedEnvironment>,
    /// Why `selected_environment` could not be read, if so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub environment_flaw: Option<String>,
    #[serde(deserialize_with = "lenient::checks")]
    pub verification: Vec<Check>,
    /// How the project's own tests are run, if it has some. They may have failed before.
    #[serde(deserialize_with = "lenient::text", skip_serializing_if = "String::is_empty")]
    pub test_command: String,
    /// How risky the planner takes the work to be. This and the next two are shown to people and
    /// decide nothing.
    #[serde(deserialize_with = "lenient::words", skip_serializing_if = "String::is_empty")]
    pub risk: String,
    /// Whether the planner takes it that people should approve.
    #[serde(deserialize_with = "lenient::words", skip_serializing_if = "String::is_empty")]
    pub need_approval: String,
    /// The planner's estimate of the cost of the work.
    #[serde(deserialize_with = "lenient::words", skip_serializing_if = "String::is_empty")]
    pub cost_hint: String,
    #[serde(deserialize_with = "lenient::text")]
    pub comment: String,
    /// The places of the repository that it rests on.
    #[serde(deserialize_with = "evidence::read", skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Citation>,
    /// The branch to start from, if not the default branch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_branch: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct GoalUnderstanding {
    #[serde(deserialize_with = "lenient::text")]
    pub main_objective: String,
    #[serde(deserialize_with = "lenient::texts")]
    pub success_criteria: Vec<String>,
    #[serde(deserialize_with = "lenient::texts")]
    pub constraints: Vec<String>,
    #[serde(deserialize_with = "lenient::text")]
    pub context_analysis: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TaskDecomposition {
    #[serde(deserialize_with = "lenient::text")]
    pub reasoning: String,
    pub subtasks: Vec<Subtask>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Subtask {
    #[serde(deserialize_with = "lenient::text")]
    pub id: String,
    #[serde(deserialize_with = "lenient::text")]
    pub description: String,
    /// Ids of the subtasks that must be finished before this one.
    #[serde(default, deserialize_with = "lenient::texts")]
    pub dependencies: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ActionPlan {
    /// Ids of subtasks; those left out come where their dependencies allow, and other names count
    /// for nothing.
    #[serde(deserialize_with = "lenient::texts")]
    pub execution_order: Vec<String>,
    #[serde(deserialize_with = "lenient::or_default")]
    pub actions: Vec<Action>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Action {
    #[serde(deserialize_with = "lenient::text")]
    pub task_id: String,
    #[serde(deserialize_with = "lenient::text")]
    pub purpose: String,
    #[serde(deserialize_with = "lenient::text")]
    pub expected_outcome: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SelectedEnvironment {
    pub name: String,
    #[serde(default, deserialize_with = "lenient::text")]
    pub reasoning: String,
    /// Commands that are run once in the container before the work begins.
    #[serde(default, deserialize_with = "lenient::texts", skip_serializing_if = "Vec::is_empty")]
    pub setup_commands: Vec<String>,
}

/// A command that must end with the expected exit code before the work counts as done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    pub command: String,
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub expect_exit: i32,
}

/// The environment of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Choice {
    pub name: String,
    /// The reason why it is not the plan's choice, for the comment on the issue.
    pub note: Option<String>,
}

/// Parses the plan in `reply`. Several plans in one reply are drafts, of which the last one counts,
/// since nothing is run by reading it. An object with a command is no plan, but a call that
/// explores the repository.
pub fn read(reply: &Reply) -> Result<Plan, Unreadable> {
    let objects = decode::objects(&reply.text);
    let Some(Value::Object(object)) = objects.into_iter().rfind(is_plan) else {
        let fault = decode::fault(reply).unwrap_or_else(|| Unreadable::new("The reply holds no plan"));
        return Err(fault.in_form(FORM));
    };
    let plan =
        from_object(object).map_err(|what| Unreadable::with_form(format!("The plan cannot be read: {what}"), FORM))?;
    if plan.repeats_the_form() {
        let what = "The reply repeats the form of a plan without filling it in";
        return Err(Unreadable::with_form(what, FORM));
    }
    Ok(plan)
}

fn is_plan(value: &Value) -> bool {
    let has = |key: &str| value.get(key).is_some_and(|value| !value.is_null());
    let phase_fits = match value.get("phase") {
        None | Some(Value::Null) => true,
        Some(phase) => phase == "planning",
    };
    let sections = ["task_decomposition", "goal_understanding", "action_plan"];
    phase_fits && !has("command") && !has("commands") && (value.get("phase").is_some() || sections.into_iter().any(has))
}

fn from_object(mut object: Map<String, Value>) -> Result<Plan, String> {
    let environment = object.remove("selected_environment").filter(|value| !value.is_null());
    let base_branch = object.remove("base_branch");
    object.remove("environment_flaw");
    let mut plan: Plan = serde_path_to_error::deserialize(Value::Object(object)).map_err(|error| {
        let path = error.path().to_string();
        format!("at `{path}`: {}", error.into_inner())
    })?;
    plan.base_branch = base_branch
        .and_then(|branch| branch.as_str().map(|name| name.trim().to_owned()))
        .filter(|name| !name.is_empty());
    // Serde would accept a list as the fields in their order.
    let environment = environment.map(|value| match value {
        Value::Object(_) => serde_json::from_value::<SelectedEnvironment>(value).map_err(|error| error.to_string()),
        _ => Err("it is not an object".to_owned()),
    });
    plan.check_criteria();
    plan.drop_unknown_order();
    match environment {
        None => {}
        Some(Ok(environment)) if !environment.name.trim().is_empty() => plan.selected_environment = Some(environment),
        Some(Ok(_)) => plan.environment_flaw = Some("its name is empty".to_owned()),
        Some(Err(flaw)) => plan.environment_flaw = Some(flaw),
    }
    Ok(plan)
}

impl Plan {
    /// Returns the subtasks in the order they can be worked on: the plan's own order, but never
    /// before a dependency.
    pub fn ordered(&self) -> Vec<&Subtask> {
        let mut ordered: Vec<&Subtask> = Vec::new();
        let mut waiting = self.wished_order();
        while !waiting.is_empty() {
            let is_ready = |subtask: &&Subtask| {
                subtask
                    .dependencies
                    .iter()
                    .all(|id| ordered.iter().any(|before| before.id == *id))
            };
            // In a cycle (only a plan that was not validated has one) the plan's own order decides.
            let next = waiting.iter().position(is_ready).unwrap_or(0);
            ordered.push(waiting.remove(next));
        }
        ordered
    }

    /// Returns the subtask with this id.
    pub fn subtask(&self, id: &str) -> Option<&Subtask> {
        self.task_decomposition.subtasks.iter().find(|subtask| subtask.id == id)
    }

    /// Takes out of the order what is no subtask: small models write actions there.
    fn drop_unknown_order(&mut self) {
        let subtasks = &self.task_decomposition.subtasks;
        let is_subtask = |id: &String| subtasks.iter().any(|subtask| subtask.id == *id);
        self.action_plan.execution_order.retain(is_subtask);
    }

    /// Adds a check for each criterion that is a command in backticks and nothing else.
    fn check_criteria(&mut self) {
        for criterion in &self.goal_understanding.success_criteria {
            let code = criterion
                .trim()
                .strip_prefix('`')
                .and_then(|rest| rest.strip_suffix('`'));
            let Some(command) = code
                .map(str::trim)
                .filter(|code| code.contains(' ') && !code.contains('`'))
            else {
                continue;
            };
            if !self.verification.iter().any(|check| check.command.trim() == command) {
                self.verification.push(Check {
                    command: command.to_owned(),
                    expect_exit: 0,
                });
            }
        }
    }

    /// Returns what the plan expects of a subtask, if it says so.
    pub fn expected_outcome(&self, id: &str) -> Option<&str> {
        let action = self.action_plan.actions.iter().find(|action| action.task_id == id)?;
        Some(action.expected_outcome.trim()).filter(|expected| !expected.is_empty())
    }

    /// Returns the environment of `known` that the plan selects, if it selects one of them. Models
    /// write names with capitals that they do not have; the exact name goes first.
    pub fn environment_among<'a>(&self, known: &[&'a str]) -> Option<&'a str> {
        let name = self.selected_environment.as_ref()?.name.as_str();
        let meant = name.trim().to_lowercase();
        let exact = known.iter().find(|known| **known == name);
        let similar = || known.iter().find(|known| known.trim().to_lowercase() == meant);
        exact.or_else(similar).copied()
    }

    fn wished_order(&self) -> Vec<&Subtask> {
        let place = |subtask: &&Subtask| {
            let order = &self.action_plan.execution_order;
            order.iter().position(|id| *id == subtask.id).unwrap_or(order.len())
        };
        let mut wished: Vec<_> = self.task_decomposition.subtasks.iter().collect();
        wished.sort_by_key(place);
        wished
    }

    fn repeats_the_form(&self) -> bool {
        let subtasks = &self.task_decomposition.subtasks;
        let is_blank = |text: &str| text.chars().all(|letter| matches!(letter, '.' | '…' | ' '));
        !subtasks.is_empty() && subtasks.iter().all(|subtask| is_blank(&subtask.description))
    }
}

/// Returns the environment to use: the plan's if it is one of `known`, else `default` with a note
/// that says why.
pub fn choose_environment(plan: &Plan, known: &[&str], default: &str) -> Choice {
    if let Some(name) = plan.environment_among(known) {
        return Choice {
            name: name.to_owned(),
            note: None,
        };
    }
    let note = match (&plan.selected_environment, &plan.environment_flaw) {
        (Some(selected), _) => format!(
            "The plan selected the environment `{}`, which is not configured (there are: {}); the default `{default}` is used.",
            selected.name.replace('`', "'"),
            known.join(", ")
        ),
        (None, Some(flaw)) => {
            format!(
                "The plan's `selected_environment` could not be read ({flaw}); the default environment `{default}` is used."
            )
        }
        (None, None) => format!("The plan selected no environment; the default `{default}` is used."),
    };
    Choice {
        name: default.to_owned(),
        note: Some(note),
    }
}
