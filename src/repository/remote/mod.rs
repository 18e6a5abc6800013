//! Transfers between a mirror and the forge.

mod retrying; // which commands are repeated
pub mod fetching; // brings a mirror up to date
pub mod submodules; // those on the same forge
pub mod lfs; // contents of large files
pub mod claiming; // who works on what, where installations share no store
pub mod pushing; // accepted commits only, each to its own repository
mod forks; // mirrors that leave with the last run on them
