//! Plans and results that people must approve.

pub(crate) mod proposal; // what a plan's approval covers, and what people are told of it
pub(crate) mod question; // the question whether a result may be delivered, and its answers
pub(crate) mod plan_question; // the question whether a plan may be carried out, and its answers
pub(crate) mod answers; // the orders that answer whichever question is open
pub(crate) mod automatic_pass; // results that pass without a person
pub(crate) mod result_guard; // secrets and protected files in a result
