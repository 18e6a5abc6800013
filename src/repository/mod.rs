//! Repositories on the worker: bare mirrors only, without checkout, hooks, filters or submodules.
//!
//! Every git process runs with a cleared environment and hardened configuration; credentials are in
//! the environment of the one process that needs them. Commits from a container are judged in
//! quarantine before any of them reaches the mirror.
//!
//! The modules are listed in reading order, which is import order.

mod protected_paths; // files that others than the project's own programs run or obey
mod config; // the section `git`
mod missing; // files and folders that need not be there
pub mod git; // runs git: settings, limits, errors, addresses
pub mod mirror; // the bare copy of one repository
pub mod reading; // files, differences and searches of a commit
pub mod commit; // how delivered commits are written: message, signature
pub mod incoming; // commits out of a container: received, judged, accepted
mod outgoing; // history into a container
pub mod unfinished; // work of a suspended run, for a mirror that does not have it
pub mod remote; // fetches and pushes, forks
mod local; // tasks on a plain folder
pub mod retention; // what mirrors no longer keep
#[cfg(test)]
mod tests;

pub use config::{Config, Submodules};
pub use git::error::RepositoryError;
pub use git::names::{CommitId, NotACommitId, branch_name};
