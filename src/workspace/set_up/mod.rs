//! Inputs of a project's set-up, so that its result can be saved and reused.

pub(crate) mod dependency_files; // files that name dependencies
pub(crate) mod install_commands; // commands that install without running files of the project
pub mod dependencies; // the key of a set-up, made from all of its inputs
