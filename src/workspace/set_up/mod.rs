//! What a project's set-up depends on, so that its result can be kept and used again.

pub(crate) mod dependency_files; // files that name dependencies
pub(crate) mod install_commands; // commands that install and run no file of the project
pub mod dependencies; // the name of a set-up, made of all that it depends on
