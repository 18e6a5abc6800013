//! Fakes of the outside world: GitHub, GitLab and a language model, spoken to over real HTTP.
//!
//! Each fake is plain data behind a router on the loopback interface, with a real bare git repository
//! on disk for each repository or project. They answer with wire types of their own and never import
//! the program's: a wrong idea of an interface must not stand on both sides. `tests/judges` lets
//! clients that others wrote drive them.
//!
//! They keep what happened (`timeline()`, `requests()`), misbehave on demand (`fails_next`,
//! `drops_connection`, ...), and can be awaited (`until`). Everything a fake starts ends when it is dropped.
//! They deliberately know nothing of web hooks, GraphQL, two-factor logins or the passing of hours.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::allow_attributes,
    clippy::return_self_not_must_use,
    unreachable_pub,
    reason = "a fake that cannot go on must fail the test that uses it, and a test binary exports nothing"
)]
#![allow(
    dead_code,
    reason = "every binary that includes the fakes uses a different part of them"
)]

// What both forges are made of.
pub mod bare; // a git repository on disk
pub mod forge; // state behind a lock, and waiting for it to change
pub mod git_http; // the smart HTTP protocol
pub mod request; // reading queries, pages and bodies
pub mod server; // a listener whose connections can be cut
pub mod traffic; // what was asked, and what goes wrong on purpose

// The forges.
pub mod github;

// The language model.
pub mod model;
