//! The streams between a container and the worker.

pub(crate) mod link; // a stream to a container's executor that outlives its connections
pub(crate) mod multiplexer; // all that a new container needs, over one stream
pub(crate) mod executor; // connection to the executor's tools
pub(crate) mod large_files; // contents of Git LFS
pub(crate) mod tunnel; // the container's network access, through the gateway
