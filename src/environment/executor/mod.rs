//! The executor in a container: its file on this machine, and the archive that brings it in.

mod archive; // archives copied into and out of new containers
mod file; // locates the executor's file
mod fingerprint; // cached file hashes

pub(super) use archive::{EXECUTOR_MODE, First, base_layer, first, linked};
pub use file::{Architecture, find_executor};
pub(super) use fingerprint::Fingerprints;
