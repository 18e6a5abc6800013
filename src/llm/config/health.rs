//! How a server of local models is kept ready for work.

use schemars::JsonSchema;
use serde::Deserialize;

/// How servers of local models are kept ready: those of `ollama` and `lmstudio`, and others on this
/// machine or in a private network.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Health {
    /// Asks the servers of a run's models before the work, and has them load the models.
    pub before_each_run: bool,
    /// Restarts a server that is down, has lost its model or loaded it with a window outside of the
    /// bounds. It must come back by itself: what the command leaves running is ended.
    pub restart_command: Vec<String>,
    /// How long the command may take, and then the server to answer.
    pub restart_seconds: u64,
    /// Pause between two restarts of a server.
    pub cool_down_seconds: u64,
    /// Smallest window, in tokens, that a model may be loaded with.
    pub min_context: Option<u64>,
    /// Largest window, in tokens, that a model may be loaded with.
    pub max_context: Option<u64>,
}

impl Default for Health {
    fn default() -> Self {
        Self {
            before_each_run: true,
            restart_command: Vec::new(),
            restart_seconds: 60,
            cool_down_seconds: 120,
            min_context: None,
            max_context: None,
        }
    }
}

impl Health {
    /// Says what is wrong with a window, by the key that it breaks.
    pub fn fault_of(&self, window: u64) -> Option<String> {
        match (self.min_context, self.max_context) {
            (Some(least), _) if window < least => Some(format!("llm.health.min_context is {least}")),
            (_, Some(most)) if window > most => Some(format!("llm.health.max_context is {most}")),
            _ => None,
        }
    }
}
