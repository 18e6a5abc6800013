//! A configured model: what is asked of it apart from conversations.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::conversation::ToolSpec;
use crate::llm::chat::Chat;
use crate::llm::config::{Config, FunctionCalling};
use crate::llm::connection::Connection;
use crate::llm::error::LlmError;
use crate::llm::local_only::LocalOnlyRules;

/// The configured model. Cheap to clone; one per process.
#[derive(Clone)]
pub struct Model {
    connection: Arc<Connection>,
    local_only: Arc<LocalOnlyRules>,
}

impl Model {
    /// Returns the model that `config` names. Does not touch the network.
    pub fn new(config: &Config) -> Result<Self, LlmError> {
        let model = Self {
            connection: Arc::new(Connection::new(config)?),
            local_only: Arc::new(LocalOnlyRules::new(config)),
        };
        Ok(match model.local_only_rule(None, &[]) {
            Some(rule) => model.restricted_by(rule),
            None => model,
        })
    }

    /// Returns the rule that keeps work on this item of `repository` on local models, if any.
    pub fn local_only_rule(&self, repository: Option<&str>, labels: &[String]) -> Option<String> {
        self.local_only.rule(repository, labels)
    }

    /// Describes, for people, the part of the work that is kept on local models, if only a part is.
    pub fn confidential_part(&self) -> Option<String> {
        self.local_only.part()
    }

    /// Returns the same model, which refuses to send to a server that is not local, naming `rule`.
    #[must_use]
    pub fn restricted_by(&self, rule: String) -> Self {
        let resolver = self.local_only.resolver(rule);
        Self {
            connection: Arc::new(self.connection.in_private_network(resolver)),
            local_only: Arc::clone(&self.local_only),
        }
    }

    /// Returns `provider model at address`, for people.
    pub fn describe(&self) -> String {
        let info = self.connection.provider.info();
        format!("{} {} at {}", info.name, info.model, info.address)
    }

    /// Returns the window in tokens.
    pub fn window(&self) -> u64 {
        self.connection.provider.info().window
    }

    /// Returns what to do if the server's window is smaller than the configured one.
    pub fn window_hint(&self) -> &str {
        &self.connection.provider.info().window_hint
    }

    /// Asks whether native tool calls are to be used: as configured, or in `auto` as the provider
    /// says of the model.
    pub async fn takes_native_calls(&self) -> bool {
        match self.connection.function_calling {
            FunctionCalling::On => true,
            FunctionCalling::Off => false,
            FunctionCalling::Auto => {
                self.connection
                    .provider
                    .takes_native_calls(&self.connection.transport)
                    .await
            }
        }
    }

    /// Asks the server whether it has the model, for `doctor`; returns how it describes itself.
    pub async fn examine(&self) -> Result<String, LlmError> {
        self.connection.provider.examine(&self.connection.transport).await
    }

    /// Starts an empty conversation. With `native` the tools are offered as native functions, and
    /// with them the pseudo tool `done`; otherwise the prompt has to describe them, and results are
    /// sent as JSON text.
    pub fn chat(&self, tools: Arc<[ToolSpec]>, native: bool, cancel: CancellationToken) -> Chat {
        Chat::new(Arc::clone(&self.connection), tools, native, cancel)
    }
}
