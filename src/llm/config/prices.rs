//! The prices of a model, from which the cost of a run is computed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::Usage;

/// US dollars for a million tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    /// Price of input tokens.
    pub input: f64,
    /// Price of output tokens.
    pub output: f64,
    /// Price of input tokens from the provider's cache; `input` when left out.
    #[serde(default)]
    pub cached: Option<f64>,
    /// Price of input tokens that the provider writes into its cache; `input` when left out.
    #[serde(default)]
    pub cache_write: Option<f64>,
}

impl Prices {
    /// Returns the cost of `usage` in US dollars.
    pub fn cost(&self, usage: &Usage) -> f64 {
        let fresh = usage.input.saturating_sub(usage.cached);
        let fresh = fresh.saturating_sub(usage.cache_written);
        #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
        let millions = |tokens: u64| tokens as f64 / 1_000_000.0;
        millions(fresh) * self.input
            + millions(usage.cached) * self.cached.unwrap_or(self.input)
            + millions(usage.cache_written) * self.cache_write.unwrap_or(self.input)
            + millions(usage.output) * self.output
    }
}
