//! Commits out of a container, from the first byte to the mirror.

pub(in crate::repository) mod quarantine; // keeps new objects apart
pub mod judge; // the rules, as pure functions
pub mod receiving; // reads a pack into a quarantine
pub mod accepting; // judges the commits and takes them into the mirror
mod large_files; // files of Git LFS among them
