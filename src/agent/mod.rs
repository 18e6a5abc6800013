//! One run, from plan to delivery. Modules are in reading order: each imports only those above it.
//!
//! [`advance::advance`] is the main loop: one stage after the other, each result saved before the
//! next begins. A stage is a function over the parts of a [`run::Run`] that it needs.

pub mod settings; // configuration of planning, verification and steering
pub mod record; // data: what a run has produced so far, and the types it is made of
pub mod services; // what all runs of a process share
pub mod shared_turns; // turns at a model that several machines share
pub mod readiness; // servers of local models, before they are needed
pub mod text; // what people read
pub mod prompt; // what the model reads
mod tool_outputs; // keeps tool outputs that are too long for the model
pub mod claim; // lease, state and record of a run, saving them, and the claim on the forge
mod code_index; // the code index of a run's base commit
pub mod reporter; // tells people: comments and labels on the item, or the terminal
pub mod inbox; // hears people: comments, commands, a pause of all runs
mod pictures; // pictures in the texts of an item
mod dialogue; // the conversation with the model, and the tool calls of its replies
mod open_workspace; // repository, container and tools that are open for a run
pub mod run; // a claimed run: the parts above together
pub mod commands; // executes commands, and passes text to the model
pub mod workspace; // opens a run's workspace, sets it up, and takes the work out
mod approval; // results that are not delivered without a person's approval
mod stages; // planning, preparing, working, verifying, delivering, finishing
pub mod waiting; // runs that nobody works on
pub mod advance; // the loop over the stages
