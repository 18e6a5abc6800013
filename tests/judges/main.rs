//! Clients that others wrote drive the fakes: a wrong idea of an interface must not stand on both
//! sides.
#![expect(clippy::unwrap_used, reason = "a test stops where something is wrong")]

#[path = "../world/fake/mod.rs"]
mod fake;

mod git;
mod octocrab;
mod python;
mod trouble;
