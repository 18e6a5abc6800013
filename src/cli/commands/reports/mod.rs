//! Commands that print what the store and the journal hold, and change nothing.

pub mod evaluations;
pub mod logs;
pub mod stats;
pub mod status;
