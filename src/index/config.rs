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
    /// `none`, or the name of one of `llm.models` that turns texts into vectors: the best places by
    /// words are then put in order by their meaning as well.
    pub embeddings: String,
}

impl Config {
    /// Returns the name of the model of embeddings, if there is to be one.
    pub fn embedder(&self) -> Option<&str> {
        Some(self.embeddings.trim()).filter(|name| !matches!(*name, "" | "none"))
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            enabled: true,
            max_file_bytes: 512 * 1024,
            embeddings: "none".to_owned(),
        }
    }
}
