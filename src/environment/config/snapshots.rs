//! Limits of the environments that are kept after a plan's set-up commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of the environments that are kept after a plan's set-up commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Snapshots {
    /// Maximum number of kept environments; 0 keeps none.
    pub keep: usize,
    /// Days after which a kept environment is removed.
    pub max_age_days: u32,
    /// A set-up that took fewer seconds is not kept, as it is quickly repeated.
    pub after_seconds: u64,
    /// Maximum bytes that a kept environment may add to its image; a larger one is not kept.
    pub max_bytes: u64,
}

impl Default for Snapshots {
    fn default() -> Self {
        Self {
            keep: 10,
            max_age_days: 14,
            after_seconds: 5,
            max_bytes: 2 * 1024 * 1024 * 1024,
        }
    }
}
