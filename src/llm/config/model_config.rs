//! Each model with all of its settings, wherever they stand in the configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::SecretString;

use crate::llm::config::keep_alive::KeepAlive;
use crate::llm::config::role::Role;
use crate::llm::config::{Config, ModelOptions, ProviderName};

/// The name by which the model of the provider's own section is counted.
pub const OWN: &str = "llm";

/// Where a model is named, which decides what a person is told to set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NamedBy {
    #[default]
    File,
    /// Usual variables, because there is no configuration file.
    Variables,
}

/// One model with all of its settings: that of the provider's section, or one of `llm.models`.
#[derive(Debug, Clone)]
pub struct ModelConfig {
    /// [`OWN`], or the key in `llm.models`.
    pub name: String,
    /// The section of the configuration that has its keys, such as `llm.ollama`.
    pub section: String,
    pub provider: ProviderName,
    pub address: String,
    pub api_key: Option<SecretString>,
    pub model: String,
    pub context_length: u64,
    pub max_tokens: Option<u64>,
    pub keep_alive: KeepAlive,
    pub parallel_requests: Option<usize>,
    pub timeout: Duration,
    pub options: ModelOptions,
    pub named_by: NamedBy,
}

/// A program that answers in the place of a model.
#[derive(Debug, Clone)]
pub struct CommandModel {
    /// The key in `llm.models`.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// All variables that it gets.
    pub env: BTreeMap<String, SecretString>,
    /// How long one answer may take, where its section says so.
    pub timeout: Option<Duration>,
    /// Whether the operator says that it sends what it reads to no other machine.
    pub is_local: bool,
}

impl ModelConfig {
    /// Returns the configuration key of the address.
    pub fn address_key(&self) -> String {
        let key = match self.provider {
            ProviderName::Ollama => "endpoint",
            ProviderName::Lmstudio | ProviderName::Openai | ProviderName::Anthropic => "base_url",
        };
        format!("{}.{key}", self.section)
    }

    /// Returns what helps where nobody answers at the address.
    pub fn start_hint(&self) -> String {
        if self.named_by == NamedBy::Variables {
            "start its server, or set OPENAI_API_KEY, OLLAMA_HOST, LMSTUDIO_BASE_URL or ANTHROPIC_API_KEY".to_owned()
        } else {
            format!("start its server, or check {}", self.address_key())
        }
    }
}

impl Config {
    /// Returns the model of the section that `provider` selects.
    pub fn own_model(&self) -> ModelConfig {
        self.model_of_section(self.provider, OWN.to_owned(), format!("llm.{}", self.provider.as_str()))
    }

    /// Returns the program that `llm.models` has under `name`.
    pub fn command_model(&self, name: &str) -> Option<CommandModel> {
        let named = self
            .models
            .get(name)
            .filter(|named| named.provider.server().is_none())?;
        Some(CommandModel {
            name: name.to_owned(),
            command: named.command.clone(),
            env: named.env.clone(),
            timeout: named.options.timeout_seconds.map(Duration::from_secs),
            is_local: named.local == Some(true),
        })
    }

    /// Returns the model that `llm.models` has under `name`, if a server answers for it.
    pub fn named_model(&self, name: &str) -> Option<ModelConfig> {
        let named = self.models.get(name)?;
        let provider = named.provider.server()?;
        let defaults = Self::default();
        let mut model = defaults.model_of_section(provider, name.to_owned(), format!("llm.models.{name}"));
        let address = match provider {
            ProviderName::Ollama => &named.endpoint,
            ProviderName::Lmstudio | ProviderName::Openai | ProviderName::Anthropic => &named.base_url,
        };
        if let Some(address) = address {
            address.clone_into(&mut model.address);
        }
        if let Some(keep_alive) = &named.keep_alive {
            model.keep_alive.clone_from(keep_alive);
        }
        Some(ModelConfig {
            model: named.model.clone(),
            api_key: named.api_key.clone(),
            context_length: named.context_length.unwrap_or(model.context_length),
            max_tokens: named.max_tokens.or(model.max_tokens),
            parallel_requests: named.parallel_requests.or(model.parallel_requests),
            timeout: self.timeout(&named.options),
            options: named.options.clone(),
            ..model
        })
    }

    /// Returns the model of the provider's section and those of `models`, without the programs.
    pub fn all_models(&self) -> Vec<ModelConfig> {
        let named = self.models.keys().filter_map(|name| self.named_model(name));
        [self.own_model()].into_iter().chain(named).collect()
    }

    /// Returns the name of the model that has `role`.
    pub fn model_of(&self, role: Role) -> &str {
        self.roles.named(role).unwrap_or(OWN)
    }

    /// Returns the names of the models that are ever asked: those of the roles, and those that take
    /// their places.
    pub fn used_models(&self) -> Vec<String> {
        let of_roles = Role::ALL
            .into_iter()
            .filter_map(|role| match (role, self.roles.named(role)) {
                (_, Some(name)) => Some(name.to_owned()),
                (Role::Planner | Role::Worker | Role::Summarizer, None) => Some(OWN.to_owned()),
                (Role::Reviewer | Role::Chat | Role::Classifier | Role::LocalOnly, None) => None,
            });
        let mut used: Vec<String> = Vec::new();
        let mut open: Vec<String> = of_roles.collect();
        open.reverse();
        while let Some(name) = open.pop() {
            if !used.contains(&name) {
                open.extend(self.fallback_of(&name));
                used.push(name);
            }
        }
        used
    }

    /// Returns the name of the model that is asked in the place of `name`, if one is.
    pub fn fallback_of(&self, name: &str) -> Option<String> {
        let options = match self.models.get(name) {
            Some(named) => &named.options,
            None => return self.own_model().options.fallback,
        };
        options.fallback.clone()
    }

    fn timeout(&self, options: &ModelOptions) -> Duration {
        Duration::from_secs(options.timeout_seconds.unwrap_or(self.timeout_seconds))
    }

    fn model_of_section(&self, provider: ProviderName, name: String, section: String) -> ModelConfig {
        let (ollama, lmstudio) = (&self.ollama, &self.lmstudio);
        let (openai, anthropic) = (&self.openai, &self.anthropic);
        let (address, model, context_length, options) = match provider {
            ProviderName::Ollama => (&ollama.endpoint, &ollama.model, ollama.context_length, &ollama.options),
            ProviderName::Lmstudio => (
                &lmstudio.base_url,
                &lmstudio.model,
                lmstudio.context_length,
                &lmstudio.options,
            ),
            ProviderName::Openai => (&openai.base_url, &openai.model, openai.context_length, &openai.options),
            ProviderName::Anthropic => (
                &anthropic.base_url,
                &anthropic.model,
                anthropic.context_length,
                &anthropic.options,
            ),
        };
        let (api_key, max_tokens, parallel_requests) = match provider {
            ProviderName::Ollama => (&None, None, Some(ollama.parallel_requests)),
            ProviderName::Lmstudio => (&None, None, Some(lmstudio.parallel_requests)),
            ProviderName::Openai => (&openai.api_key, openai.max_tokens, openai.parallel_requests),
            ProviderName::Anthropic => (
                &anthropic.api_key,
                Some(anthropic.max_tokens),
                anthropic.parallel_requests,
            ),
        };
        ModelConfig {
            name,
            section,
            provider,
            address: address.clone(),
            api_key: api_key.clone(),
            model: model.clone(),
            context_length,
            max_tokens,
            keep_alive: ollama.keep_alive.clone(),
            parallel_requests,
            timeout: self.timeout(options),
            options: options.clone(),
            named_by: self.named_by,
        }
    }
}
