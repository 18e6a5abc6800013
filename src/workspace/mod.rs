//! The workspace of a run: the project in a container, with its tools.
//!
//! In reading order. Only streams connect container and repository; the worker's disk has the bare
//! mirror and no work tree.

pub mod base; // start and destination of the work
pub mod error; // why a workspace could not be opened or used
pub(crate) mod scripts; // shell scripts that copy the project in and take the work out
pub mod set_up; // inputs of a project's set-up
pub(crate) mod streams; // streams between a container and the worker
mod outside_rules; // changes that the project's rules exclude
pub mod kept_work; // work that only the mirror has
pub mod project; // the project in a running container
pub mod pool; // containers started in advance
pub mod containers; // the engine, and the configuration of all containers
pub mod pool_filler; // keeps the pool filled
pub mod opening; // opens a workspace
pub mod prefetch; // opens a workspace while the run still plans
pub mod tools; // filters between the model and the tools

/// Name of the built-in tool server in the container.
pub const WORKSPACE: &str = "workspace";
