//! Reads commits in the mirror, without a checkout.

pub mod files; // the files of a commit, and which of them changed
pub mod submodules; // which folders belong to other repositories
mod difference; // differences for people and for digests
pub mod contents; // contents of files in Git LFS, on this machine
pub mod objects; // the content of everything that commits add or replace
pub mod content_reader; // contents of files, through a git that stays open
pub mod large_files; // which files are kept in Git LFS
pub mod search; // searches for a pattern
