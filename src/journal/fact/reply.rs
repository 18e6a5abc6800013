//! Facts about replies of the model.

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
