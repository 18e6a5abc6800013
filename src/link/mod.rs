//! A byte stream that outlives the connections that carry it, between the worker and the executor
//! in a container.
//!
//! Each end counts what it has sent and received ([`LinkEnd`], pure), and keeps what the other has
//! not taken yet. Where a connection is lost, in the middle of a frame or without a word, another
//! one begins with both counts ([`session`]) and goes on from there: no byte is lost, doubled or
//! out of order, and nothing depends on how a connection ended. What cannot be true ends the link
//! as [`Broken`]; it is never guessed what was meant.
//!
//! Who opens connections, how often and how long it is waited for one is the users' business.

pub mod frame; // how bytes and counts are written
pub mod end; // one end: what is counted and kept
pub mod session; // how a connection begins, and who may go on with a link
pub mod carrying; // one connection, until it is lost
#[cfg(test)]
mod tests;

pub use end::LinkEnd;

/// The reason why a link cannot go on: the other end said what cannot be true.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    #[error("a frame has a form that does not exist")]
    Form,
    #[error("a frame begins at byte {begin}, and {expected} was expected")]
    Begin { begin: u64, expected: u64 },
    #[error("a frame does not end where it should")]
    End,
    #[error("more bytes were sent than may be on their way")]
    TooMuch,
    #[error("{taken} bytes are said to have arrived, of {known} to {sent}")]
    Count { taken: u64, known: u64, sent: u64 },
    #[error("there is no executor any more")]
    Nobody,
    #[error("the other end does not know the key of the session")]
    Key,
}
