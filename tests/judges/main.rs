//! Clients that others wrote drive the fakes: a wrong idea of an interface must not stand on both
//! sides.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test stops where something is wrong; a variable names another Python"
)]

#[path = "../world/fake/mod.rs"]
mod fake;

mod compose;
mod git;
mod markdown;
mod mcp;
mod messengers;
mod octocrab;
mod openapi;
mod promtool;
mod python;
mod trouble;
mod webhooks;
