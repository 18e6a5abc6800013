//! The section `index` of the configuration.

use schemars::JsonSchema;
use serde::Deserialize;

/// The code index that plans rest on.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Whether the planner is shown the best places for its task, and may search the index.
    pub enabled: bool,
    /// Size of the largest file whose text is searched for; larger ones are found by their path.
    pub max_file_bytes: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            max_file_bytes: 512 * 1024,
        }
    }
}
