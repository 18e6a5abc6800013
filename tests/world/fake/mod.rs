//! Fakes of the outside world: GitHub, GitLab, Slack, LINE and a language model, spoken to over real HTTP.
//!
//! Each fake is plain data behind a router on the loopback interface, with a real bare git
//! repository on disk for each repository or project. They answer with wire types of their own and
//! never import the program's: a wrong idea of an interface must not stand on both sides.
//! `tests/judges` lets clients that others wrote drive them.
//!
//! They keep what happened (`timeline()`, `requests()`), misbehave on demand (`fails_next`,
//! `drops_connection`, ...), and can be awaited (`until`). Everything a fake starts ends when it is
//! dropped. They deliberately know nothing of web hooks, most of GraphQL, two-factor logins or the passing
//! of hours.
#![allow(
    clippy::allow_attributes,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::return_self_not_must_use,
    clippy::unnecessary_wraps,
    clippy::unused_async,
    clippy::unused_self,
    clippy::unwrap_used,
    dead_code,
    unreachable_pub,
    reason = "a fake that cannot go on must fail the test that uses it; every binary that includes the fakes uses a different \
              part of them and exports nothing; its doors are methods even where they need nothing of it; handlers that cannot \
              refuse look like those that can"
)]

// The parts that both forges are made of.
pub mod answer; // answers that both give alike
pub mod bare; // a git repository on disk
pub mod board; // the items of a forge, and what can be done to them
pub mod engine; // a Docker engine of another version
pub mod fault; // what goes wrong on purpose, as data
pub mod forge; // state behind a lock, and waiting for it to change
pub mod git_http; // the smart HTTP protocol
pub mod lfs; // large files, beside the git protocol
pub mod history; // what happened to an item
pub mod item; // an item, as a test sees and changes it
pub mod proxy; // a company's way out
pub mod gateway; // what stands before a model, and does not wait for ever
pub mod remark; // a text on an item, likewise
pub mod request; // reading queries, pages and bodies
pub mod running; // what a forge consists of
pub mod server; // a listener whose connections can be cut
pub mod ear; // keeps what it is sent
pub mod site; // somewhere in the world
pub mod tls; // encryption in front of the others
pub mod traffic; // what was asked, and what is to go wrong

// The forges.
pub mod github;
pub mod gitlab;

// The messengers.
pub mod line;
pub mod slack;

// The language model.
pub mod model;
