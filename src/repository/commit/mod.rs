//! Writes the commits that are delivered.

pub mod message; // sanitized message and the run's trailer
pub(in crate::repository) mod identity; // author and committer
pub mod signing; // the signing key
pub(in crate::repository) mod rewrite; // the container's commits, with our author
