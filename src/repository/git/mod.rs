//! Runs git: hardened, limited, and with its failures read.

pub(in crate::repository) mod error; // who must act
pub(in crate::repository) mod names; // commit ids and branch names
pub(in crate::repository) mod failure; // reads git's messages
pub(in crate::repository) mod hardening; // environment and settings of every git process
pub(in crate::repository) mod limits; // time, processor time and memory
mod silence; // notices a transfer that stands still
pub(in crate::repository) mod process_group; // ends git with its children
mod program; // looks up git in the search path
pub(in crate::repository) mod progress; // what git says while it works
pub mod command; // a git process
pub mod address; // where a repository is, and the login for it
pub(in crate::repository) mod lock; // one process at a time on a mirror
