//! Reads JSON out of whatever a model wrote around it.

use serde_json::Value;

use super::{Reply, Turn};

/// Why a reply could not be read, in words for the model: it is sent back as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// Returns the turn that a working reply holds, from native calls or from JSON in its text.
pub fn turn(_reply: &Reply) -> Result<Turn, Unreadable> {
    todo!()
}

/// Returns the JSON objects found in `text`, in order: string-aware, in fences, prose, after `<think>…</think>`,
/// with trailing commas and single quotes mended. Nested objects are not listed apart.
pub fn objects(_text: &str) -> Vec<Value> {
    todo!()
}
