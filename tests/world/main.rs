//! The real program against a faked world, real git and the real Docker engine.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    unreachable_pub,
    reason = "a test that cannot go on says so by panicking, and a test binary exports nothing"
)]

mod big;
mod environment;
mod executor;
mod fake;
mod guard;
mod issues;
mod killed;
mod logs;
mod lost_container;
mod mcp_servers;
mod orphans;
mod processes;
mod side_by_side;
mod stopping;
mod world;
