//! The streams between a container and the worker.

pub(crate) mod executor; // the executor's tools, as a connection
pub(crate) mod tunnel; // the container's way out, through the gateway
