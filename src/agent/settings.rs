//! The configuration of planning, verification, steering and change requests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Configuration of planning and verification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Planning {
    /// Whether to plan; otherwise the work starts at once, in the default environment.
    pub enabled: bool,
    /// Maximum number of subtasks in a plan.
    pub max_subtasks: usize,
    /// Maximum number of model turns that explore the repository before the plan.
    pub max_look_turns: u32,
    /// Whether a plan is used again for the same input, where the planner has `temperature: 0` and
    /// a `seed`.
    pub reuse: bool,
    pub replanning: Replanning,
    pub circuit_breaker: CircuitBreaker,
    pub verification: Verification,
}

/// Configuration of revisions of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Replanning {
    /// Maximum number of revisions in a run; 0 keeps the first plan.
    pub max_revisions: usize,
}

impl Default for Replanning {
    fn default() -> Self {
        Self { max_revisions: 3 }
    }
}

/// Configuration of what ends a run whose model cannot call its tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct CircuitBreaker {
    /// Number of consecutive tool calls that could not be carried out after which the model is
    /// told; after as many more the plan is made anew, after as many more the run fails. 0 for
    /// never.
    pub tool_failures: u32,
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self { tool_failures: 8 }
    }
}

/// Configuration of comments during a run, and of waiting for people and remote services.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Steering {
    /// Seconds between two polls of the comments on a running task.
    pub interval_seconds: u64,
    /// Treatment of comments by people who may not write to the repository and are not among the
    /// `allowed_users`.
    pub other_comments: OtherComments,
    /// Hours of waiting for a model, a forge or Docker that does not answer, after which the run
    /// fails.
    pub give_up_hours: u32,
    /// Days after which a run that waits for a person is closed.
    pub expire_days: u32,
}

/// Treatment of comments by people without authority.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OtherComments {
    /// The model does not see them.
    Ignore,
    /// Comments that existed, unchanged, before the label was set are quoted to the model as text
    /// by strangers.
    Quote,
}

impl Default for Steering {
    fn default() -> Self {
        Self {
            interval_seconds: 10,
            other_comments: OtherComments::Ignore,
            give_up_hours: 24,
            expire_days: 30,
        }
    }
}

/// Configuration of the pull/merge requests that the program opens.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ChangeRequests {
    /// Labels that each new request gets.
    pub labels: Vec<String>,
    /// Accounts that each new request is assigned to.
    pub assignees: Vec<String>,
    /// Accounts that are asked to review each new request; on GitHub also teams, as
    /// `organization/team`.
    pub reviewers: Vec<String>,
    /// Whether the project's own template of requests is filled in.
    pub template: bool,
}

impl Default for ChangeRequests {
    fn default() -> Self {
        Self {
            labels: Vec::new(),
            assignees: Vec::new(),
            reviewers: Vec::new(),
            template: true,
        }
    }
}

/// Configuration of the checks after the model declares the task done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Verification {
    /// Whether to run the plan's checks and the project's tests, and to examine the diff.
    pub enabled: bool,
    /// Maximum number of attempts to repair one failure.
    pub max_rounds: u32,
    /// From the failure with this number on, nothing is repaired.
    pub max_failures: u32,
    /// Maximum number of tries at a task, each from its base, of a model that writes whole files as
    /// text and whose result does not pass; the one whose checks fail least is delivered.
    pub max_tries: u32,
    /// The project's own tests: a command; `auto` for the one that the plan names or the project's
    /// files suggest; `none`.
    pub test_command: String,
    /// Whether a model that says done, and whose result fails no check, is shown once more what the
    /// task asks for, where that is several things: `auto` for models that write whole files.
    pub ask_twice: AskTwice,
    pub environment: VerificationEnvironment,
    /// A set-up that took more seconds is not repeated in a new container: the checks run where the
    /// work was done, unless the set-up is saved.
    pub fresh_set_up_seconds: u64,
}

/// Which models are shown once more what the task asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AskTwice {
    /// Those that write whole files, by `llm.edits` or since they went round in circles.
    #[default]
    Auto,
    /// All.
    Always,
    /// None.
    Never,
}

/// The container in which the checks run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerificationEnvironment {
    /// A new container with the commit and its dependencies.
    #[default]
    Fresh,
    /// The container that the model worked in.
    Same,
}

impl Default for Planning {
    fn default() -> Self {
        Self {
            enabled: true,
            max_subtasks: 20,
            max_look_turns: 10,
            reuse: true,
            replanning: Replanning::default(),
            circuit_breaker: CircuitBreaker::default(),
            verification: Verification::default(),
        }
    }
}

impl Default for Verification {
    fn default() -> Self {
        Self {
            enabled: true,
            max_rounds: 2,
            max_failures: 3,
            max_tries: 8,
            test_command: "auto".to_owned(),
            ask_twice: AskTwice::default(),
            environment: VerificationEnvironment::default(),
            fresh_set_up_seconds: 120,
        }
    }
}
