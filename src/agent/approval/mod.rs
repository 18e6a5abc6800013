//! What is not delivered without a person's word.

pub(crate) mod question; // the question people are asked, and what answers it
pub(crate) mod result_guard; // secrets and protected files in a result
