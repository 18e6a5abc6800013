//! The way to one model: its protocol, its server and the settings that all conversations share.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;

use crate::llm::config::{Config, FunctionCalling, ProviderName};
use crate::llm::error::LlmError;
use crate::llm::local_only::private_network::PrivateNetworkResolver;
use crate::llm::provider::{Provider, anthropic, ollama, openai};
use crate::llm::transport::Transport;
use crate::llm::transport::concurrency_limit::ConcurrencyLimit;

/// The way to one model.
pub(super) struct Connection {
    pub(super) provider: Arc<dyn Provider>,
    pub(super) transport: Transport,
    pub(super) function_calling: FunctionCalling,
    pub(super) constrains_replies: bool,
    pub(super) limit: ConcurrencyLimit,
}

impl Connection {
    /// Returns the model that `config` names. Does not touch the network.
    pub(super) fn new(config: &Config) -> Result<Self, LlmError> {
        let (url, key, provider): (Url, Option<SecretString>, Arc<dyn Provider>) = match config.provider {
            ProviderName::Ollama => {
                let (url, server) = ollama::server(&config.ollama)?;
                (url, None, Arc::new(server))
            }
            ProviderName::Lmstudio => {
                let (url, server) = openai::lmstudio(&config.lmstudio)?;
                (url, None, Arc::new(server))
            }
            ProviderName::Openai => {
                let (url, server) = openai::openai(&config.openai)?;
                (url, config.openai.api_key.clone(), Arc::new(server))
            }
            ProviderName::Anthropic => {
                let (url, server) = anthropic::server(&config.anthropic)?;
                (url, config.anthropic.api_key.clone(), Arc::new(server))
            }
        };
        Ok(Self {
            provider,
            transport: Transport::new(&url, Duration::from_secs(config.timeout_seconds), key),
            function_calling: config.function_calling,
            constrains_replies: config.constrained_replies,
            limit: ConcurrencyLimit::new(config.parallel_requests()),
        })
    }

    /// Returns the same way, restricted to the servers that `resolver` allows.
    pub(super) fn in_private_network(&self, resolver: PrivateNetworkResolver) -> Self {
        Self {
            provider: Arc::clone(&self.provider),
            transport: self.transport.in_private_network(resolver),
            function_calling: self.function_calling,
            constrains_replies: self.constrains_replies,
            limit: self.limit.clone(),
        }
    }
}
