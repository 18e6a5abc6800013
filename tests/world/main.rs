//! The world tests of the tools; the other parts have theirs here too.
#![expect(clippy::unwrap_used, reason = "tests may panic")]

mod executor;
mod guard;
mod mcp_servers;
mod processes;
