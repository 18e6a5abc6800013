//! Facts about replies of the model, and about conversations that begin again.

use serde::{Deserialize, Serialize};

/// What a reply repeated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeated {
    pub piece: String,
    /// Length of the piece.
    pub characters: usize,
    /// How often it had come.
    pub times: usize,
}

/// A conversation that began again from the facts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Restarted {
    /// Number of messages that were replaced.
    pub messages: usize,
}

/// A task that began again at its base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BegunAgain {
    /// Number of tries that were not good enough.
    pub failed: usize,
    /// Why the last of them was not.
    pub reason: String,
}
