//! One run, from plan to delivery.
//!
//! [`run::Run::advance`] is the heart: one stage after the other, each result saved before the next begins. The
//! stages are one file each; what they share is below them in this list.

pub mod budget; // what a run may use
pub mod record; // what a run has produced so far
pub mod workspace; // container and repository together
pub mod setback; // why a stage ended without its result
pub mod harmless; // a model's words, fit to be shown
pub mod talk; // what people read
pub mod report; // what the person who gave a local task reads
pub mod prompt; // what the model reads
mod overview; // the project's files at a glance
pub mod look; // the tools that look into the bare repository
pub mod run; // the loop
pub mod thread; // where people are told
pub mod source; // where the work starts and where its result goes
mod rulebook; // the project's rules, from the base branch
mod memory; // earlier runs on the same item
mod confined; // file tools that see less than there is
mod ask; // one question to the model, until it can be read
mod compacting; // what to do when the conversation outgrows the window
mod outputs; // what was too long for the model
mod calls; // the tool calls of one reply
mod keeping; // the work is kept while the model thinks
pub mod desk; // what the model works at
mod planning;
mod preparing;
mod working;
mod verifying;
mod delivering;
mod ending;

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
    pub verification: Verification,
}

/// What happens after the model says that it is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Verification {
    /// Runs the plan's verification commands.
    pub enabled: bool,
    /// How often the model may repair what verification found.
    pub max_rounds: u32,
}

impl Default for Planning {
    fn default() -> Self {
        Self {
            enabled: true,
            max_subtasks: 20,
            max_look_turns: 10,
            verification: Verification::default(),
        }
    }
}

impl Default for Verification {
    fn default() -> Self {
        Self {
            enabled: true,
            max_rounds: 2,
        }
    }
}
