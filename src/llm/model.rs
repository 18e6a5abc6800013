//! A configured model: what is asked of it apart from conversations.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::conversation::ToolSpec;
use crate::llm::chat::Chat;
use crate::llm::config::function_calling::FunctionCalling;
use crate::llm::config::role::Role;
use crate::llm::connection::Connection;
use crate::llm::error::LlmError;
use crate::llm::local_only::private_network::PrivateNetworkResolver;

/// The model of a role. Cheap to clone.
#[derive(Clone)]
pub struct Model {
    connection: Arc<Connection>,
    role: Role,
}

impl Model {
    pub(super) fn new(connection: Arc<Connection>, role: Role) -> Self {
        Self { connection, role }
    }

    /// Returns the same model, which refuses to send to a server that is not local.
    #[must_use]
    pub(super) fn restricted_by(&self, resolver: PrivateNetworkResolver) -> Self {
        Self {
            connection: Arc::new(self.connection.in_private_network(resolver)),
            role: self.role,
        }
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Returns the role in which the model is asked.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Returns the model's name in the configuration.
    pub fn name(&self) -> &str {
        &self.connection.name
    }

    /// Returns the time-out that the model's own section names.
    pub fn own_timeout(&self) -> Option<Duration> {
        self.connection.own_timeout
    }

    /// Returns `provider model at address`, for people.
    pub fn describe(&self) -> String {
        self.connection.provider.info().describe()
    }

    /// Returns the address of its server.
    pub fn address(&self) -> &str {
        &self.connection.provider.info().address
    }

    /// Tells whether its server is at a loopback address, which is another one on each machine.
    pub fn is_at_loopback(&self) -> bool {
        self.connection.transport.is_loopback()
    }

    /// Tells whether its server is one that `llm.health` looks after.
    pub fn is_kept_ready(&self) -> bool {
        self.connection.is_near || matches!(self.connection.provider.info().name, "ollama" | "lmstudio")
    }

    /// Tells whether its server is on this machine or in a private network.
    pub fn is_near(&self) -> bool {
        self.connection.is_near
    }

    /// Tells whether the same holds for each model that takes its place when it cannot be reached.
    pub fn stays_near(&self) -> bool {
        let mut places = std::iter::successors(Some(&self.connection), |connection| connection.fallback.as_ref());
        places.all(|connection| connection.is_near)
    }

    /// Tells whether it is shown pictures: its section says so, and nothing of it has to be masked.
    pub fn takes_pictures(&self) -> bool {
        self.connection.takes_pictures
    }

    /// Returns what decides on the replies besides the prompt; `None` where the same prompt may
    /// give another reply each time: without `temperature: 0` and a `seed`.
    pub fn reproducible(&self) -> Option<String> {
        self.connection.reproducible.clone()
    }

    /// Tells whether another model is asked while this one cannot be.
    pub fn has_fallback(&self) -> bool {
        self.connection.fallback.is_some()
    }

    /// Has the server load the model, and returns the window that it is loaded with, where the
    /// server tells.
    pub async fn load(&self) -> Result<Option<u64>, LlmError> {
        self.connection.provider.load(&self.connection.transport).await
    }

    /// Returns how many tokens of the window a prompt may have: all but the longest reply that is
    /// asked for.
    pub fn window(&self) -> u64 {
        self.connection.provider.info().room()
    }

    /// Returns the window in tokens, as it is configured.
    pub fn whole_window(&self) -> u64 {
        self.connection.provider.info().window
    }

    /// Returns what to do if the server's window is smaller than the configured one.
    pub fn window_hint(&self) -> &str {
        &self.connection.provider.info().window_hint
    }

    /// Tells whether native tool calls are used: as configured, or in `auto` as the provider says
    /// of the model.
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
        Chat::new(Arc::clone(&self.connection), self.role, tools, native, cancel)
    }

    /// Returns a copy of `chat` that asks this model, in this one's role. Unless the conversation
    /// was begun with it, its calls are sent as JSON text, because it may not take native ones.
    pub fn aside(&self, chat: &Chat) -> Chat {
        chat.aside(&self.connection, self.role)
    }
}
