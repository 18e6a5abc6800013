//! Texts for people: one function for each, so that all are in one place.

pub mod verification; // how the result was checked
pub(crate) mod refused_hosts; // hosts that the container was refused
pub mod usage; // what a run has used
pub(crate) mod plans; // the plan in the progress comment
pub(crate) mod plan_question; // the question whether a plan may be carried out
pub mod reviews; // the reviews of plan and result
pub mod comments; // progress and final comments
pub mod change_request; // texts of change requests
pub mod template; // a project's own template of them
pub mod replies; // replies to commands, and questions to people
pub mod waits; // what runs wait for, and whether they may go on
pub mod local_report; // the end of a task from the command line
