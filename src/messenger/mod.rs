//! The messengers: Slack and LINE. What people write there comes in, and texts go out.
//!
//! Guarantees: what came in is reported with a name by which its repetition is told; a text that
//! goes out is [`Clean`], mentions nobody, and is no longer than the messenger takes; every request
//! has a time-out, and what came of it is one of four [`Outcome`]s, of which one says that nobody
//! knows. Who may speak, and what is said, is decided above.
//!
//! Modules in reading order.

pub mod config; // the sections `slack` and `line`
pub mod place; // where somebody speaks, and who
pub mod words; // texts as messengers take them
pub mod outcome; // what came of a request
pub mod slack;
pub mod line;

use std::time::Duration;

/// Longest wait for a messenger's answer.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Largest answer that is read.
const LARGEST_ANSWER: usize = 4 * 1024 * 1024;
/// Largest picture that is read.
const LARGEST_PICTURE: usize = crate::picture::LARGEST;
