//! Where a run works: the project in a container, with the tools at hand.
//!
//! In reading order. Between container and repository there are only streams; the worker's disk
//! sees the bare mirror and nothing else.

pub mod base; // where the work starts and where its result goes
pub mod error; // why a workspace could not be opened or used
pub(crate) mod scripts; // shell scripts that bring the project in and the work out
pub mod set_up; // what a project's set-up depends on
pub(crate) mod streams; // what flows between a container and the worker
pub mod project; // the project in a running container
pub mod pool; // containers that wait for runs
pub mod containers; // the engine, and what every container is started with
pub mod pool_filler; // keeps containers waiting
pub mod opening; // opens a workspace
pub mod prefetch; // opens one while the run still plans
pub mod tools; // what stands between the model and the tools

/// Name of the built-in tool server in the container.
pub const WORKSPACE: &str = "workspace";
