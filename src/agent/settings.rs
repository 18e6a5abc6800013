//! The configuration of planning, verification and steering.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a run is planned and checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Planning {
    /// Without a plan the work starts at once, in the default environment.
    pub enabled: bool,
    /// Most subtasks a plan may have.
    pub max_subtasks: usize,
    /// Most model turns that look at the repository before the plan must be there.
    pub max_look_turns: u32,
    pub replanning: Replanning,
    pub verification: Verification,
}

/// How often the plan may change while the work goes on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Replanning {
    /// Most revisions of the plan in a run; 0 keeps the first plan.
    pub max_revisions: usize,
}

impl Default for Replanning {
    fn default() -> Self {
        Self { max_revisions: 3 }
    }
}

/// How people are heard while a run works, and how long a run waits for them and for the outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Steering {
    /// How often the thread of a running task is looked at, in seconds.
    pub interval_seconds: u64,
    /// What becomes of comments by people who may not write to the repository and are not among the
    /// `allowed_users`.
    pub other_comments: OtherComments,
    /// After how many hours of waiting for a model, a forge or Docker that does not answer the run
    /// fails.
    pub give_up_hours: u32,
    /// After how many days a run that waits for a person is closed.
    pub expire_days: u32,
}

/// What becomes of comments by people who may not decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OtherComments {
    /// The model never sees them.
    Ignore,
    /// Those that stood there, unchanged, before the label was put on are quoted to the model as
    /// what strangers say.
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

/// What happens after the model says that it is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Verification {
    /// Runs the plan's verification commands and the project's own tests, and looks at what was
    /// changed.
    pub enabled: bool,
    /// How often the model may try to repair one failure.
    pub max_rounds: u32,
    /// The failure with this number is not repaired any more.
    pub max_failures: u32,
    /// How the project's own tests are run: a command; `auto` for the one that the plan names or
    /// the project's files show; `none`.
    pub test_command: String,
    pub environment: VerificationEnvironment,
    /// A set-up that took more seconds is not repeated in a new container: the checks run where the
    /// work was done, unless that set-up is kept.
    pub fresh_set_up_seconds: u64,
}

/// Where the checks run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum VerificationEnvironment {
    /// In a new container with the commit and what was installed for it.
    #[default]
    Fresh,
    /// In the container that the model worked in.
    Same,
}

impl Default for Planning {
    fn default() -> Self {
        Self {
            enabled: true,
            max_subtasks: 20,
            max_look_turns: 10,
            replanning: Replanning::default(),
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
            test_command: "auto".to_owned(),
            environment: VerificationEnvironment::default(),
            fresh_set_up_seconds: 120,
        }
    }
}
