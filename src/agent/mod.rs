//! One run, from plan to delivery.
//!
//! `Run::advance` (in `advancing`) is the heart: one stage after the other, each result saved
//! before the next begins. The stages are one file each; what they share is above them in this
//! list.

pub mod budget; // what a run may use
pub mod round; // what follows on an own pull/merge request
pub mod hearing; // whose words count
pub mod objection; // what is not delivered without a person's word
mod lists; // files that name dependencies
mod installing; // commands that run no file of the project
mod scripts; // what runs in the container to bring the project in and the work out
pub mod dependencies; // what a project's set-up depends on
pub mod vouched; // what whoever put the label on has read
pub mod record; // what a run has produced so far
pub mod stop; // how work is told to stop
pub mod ending; // how the work on a run ended
pub mod order; // what people say to a run
pub mod setback; // why a stage ended without its result
pub mod way_out; // container and gateway together
mod executor_stream; // the executor in a container, as a connection
pub mod workspace; // container and repository together
pub mod thread; // where people are told
mod workspace_error;
pub mod containers; // engine
pub mod warm; // containers that wait for runs
pub mod workshop; // what all runs share
mod proof; // what people read of the evidence
mod refused; // hosts that the container asked for in vain
pub mod talk; // what people read
pub mod answers; // what they read in answer to what they said
pub mod report; // what the person who gave a local task reads
pub mod prompt; // what the model reads
mod overview; // the project's files at a glance
pub mod warming; // containers are kept waiting
mod opening; // a container with the project in it and the tools at hand
mod early; // opened while the model still plans
pub mod look; // the tools that look into the bare repository
pub mod wishes; // the tools that talk to the program itself
pub mod mailbox; // what comes in while a run works
pub mod listening; // who puts it in
mod outputs; // what was too long for the model
mod stored; // what the store gets
mod keeping; // the work is kept while the model thinks
mod confined; // file tools that see less than there is
pub mod desk; // what the model works at
mod pending; // an edit that waits
pub mod run; // a claimed run
mod refusing; // what the container was refused, while it works
pub mod reporter; // comments and labels
pub mod claim; // lease, state, record
pub mod inbox; // what people say
pub mod run_workspace; // repository, container, tools
mod executing; // own commands in a container
mod setting_up; // set-up commands
pub mod dialogue; // the conversation
mod leaving; // closes what is open
mod progress; // the one comment that is edited
mod branch_name;
pub mod source; // where the work starts and where its result goes
pub mod discretion; // work on what not everybody may read
mod rulebook; // the project's rules, from the base branch
mod marked; // file tools that write no redaction marks
mod memory; // earlier runs on the same item
mod audience; // whose words the model is given
mod approving; // results that wait for people's word
mod steering; // people's words and orders take effect
mod ask; // one question to the model, until it can be read
mod compacting; // what to do when the conversation outgrows the window
mod policy; // what rules refuse to the model
mod calls; // the tool calls of one reply
mod revising; // a better plan
mod following_up; // the task of a run that follows on its own pull/merge request
mod planning;
mod preparing;
mod working;
mod bench; // a container of its own for checks
mod checking;
mod verifying;
mod clearing; // branches that nobody needs any more
mod guard; // what a result holds
mod delivering;
mod saving; // unfinished work goes where people can see it
mod putting_down; // the end of the work, for now or for good
pub mod attending; // runs that nobody works on
pub mod advancing; // the heart: one stage after the other

/// Name of the built-in tool server in the container.
const WORKSPACE: &str = "workspace";

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
