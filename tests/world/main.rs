//! The real program against a faked world, real git and the real Docker engine.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod environment;
mod executor;
mod fake;
mod guard;
mod issues;
mod mcp_servers;
mod processes;
mod world;
