//! The stages of a run, as functions over the parts that they need.

mod project_rules; // the project's rules, from the base branch
pub(super) mod follow_up; // runs on the program's own pull/merge requests
pub(crate) mod planning;
pub(crate) mod preparing;
pub(crate) mod rescue; // saves unfinished work where people can see it
pub(crate) mod working;
pub(crate) mod verifying;
pub(crate) mod reviewing; // judgements of a second model on plan and result
pub(crate) mod delivering;
pub(crate) mod closing; // closes what is open
mod elsewhere; // another installation came before
pub(crate) mod finishing; // the end of the work, temporary or final
