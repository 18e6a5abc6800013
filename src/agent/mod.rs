//! One run, from plan to delivery.

use schemars::JsonSchema;
use serde::Deserialize;

/// How a run is planned and checked.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Planning {
    /// Without a plan the work starts at once, in the default environment.
    pub enabled: bool,
    /// Most subtasks a plan may have.
    pub max_subtasks: usize,
    /// Most model turns that look at the repository before the plan must be there.
    pub max_look_turns: u32,
    pub verification: Verification,
}

/// What happens after the model says that it is done.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Verification {
    /// Runs the plan's verification commands.
    pub enabled: bool,
    /// How often the model may repair what verification found.
    pub max_rounds: u32,
}

/// What one run may use. Nothing is limited by what is left out.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Budget {
    /// Tokens in and out together.
    pub tokens: Option<u64>,
    /// Minutes from the first claim.
    pub minutes: Option<u64>,
    /// Cost in US dollars; needs `prices`.
    pub cost_usd: Option<f64>,
    pub prices: Option<Prices>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Prices {
    pub input: f64,
    pub output: f64,
    /// Of input tokens that came from the provider's cache; `input` when left out.
    #[serde(default)]
    pub cached: Option<f64>,
}

impl Default for Planning {
    fn default() -> Self {
        Self {
            enabled: true,
            max_subtasks: 20,
            max_look_turns: 10,
            verification: Verification::default(),
        }
    }
}

impl Default for Verification {
    fn default() -> Self {
        Self {
            enabled: true,
            max_rounds: 2,
        }
    }
}
