//! Results that are not delivered without a person's approval.

pub(crate) mod question; // the question to people, and the orders that answer it
pub(crate) mod result_guard; // secrets and protected files in a result
