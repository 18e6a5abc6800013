//! Writes the commits that are delivered.

pub mod message; // sanitized message and the run's trailer
pub mod signing; // the signing key
pub(in crate::repository) mod rewrite; // the container's commits, with our author
