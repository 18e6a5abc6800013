//! The section `llm` of the configuration.

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Which model to use, and how.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The provider, and the section below that configures it.
    pub provider: ProviderName,
    /// Native tool calls: `auto` asks the provider and falls back to JSON in the text.
    pub function_calling: FunctionCalling,
    /// Makes the server hold replies in JSON text to their schema.
    pub constrained_replies: bool,
    /// How long one reply may take.
    pub timeout_seconds: u64,
    /// Only models on this machine or in a private network are used, for everything.
    pub local_only: bool,
    /// Repositories with local models only: `owner/repo`, `owner/*`, `group/*` with all below it.
    pub local_only_repositories: Vec<String>,
    /// Label of items for which only local models are used.
    pub local_only_label: Option<String>,
    /// Hosts that count as local although their addresses are not private.
    pub local_endpoints: Vec<String>,
    pub ollama: Ollama,
    pub lmstudio: LmStudio,
    pub openai: OpenAi,
    pub anthropic: Anthropic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderName {
    Ollama,
    Lmstudio,
    Openai,
    Anthropic,
}

/// `auto`, `true` or `false`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FunctionCalling {
    Auto,
    On,
    Off,
}

/// Ollama, through its native API.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ollama {
    /// Address of the server.
    pub endpoint: String,
    /// Name of the model.
    pub model: String,
    /// Window in tokens, sent as `num_ctx`.
    pub context_length: u64,
    /// How long the model stays loaded after a call, e.g. `30m`.
    pub keep_alive: String,
    /// Requests that are made at once; further ones wait.
    pub parallel_requests: usize,
}

/// LM Studio; `/v1` is added to the address if missing.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct LmStudio {
    pub base_url: String,
    pub model: String,
    pub context_length: u64,
    /// Requests that are made at once; further ones wait.
    pub parallel_requests: usize,
}

/// OpenAI or any server that speaks its chat completions protocol.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OpenAi {
    pub base_url: String,
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    pub model: String,
    pub context_length: u64,
    /// Longest reply in tokens; left to the server when empty.
    pub max_tokens: Option<u64>,
    /// Requests that are made at once; no limit when empty.
    pub parallel_requests: Option<usize>,
}

/// Anthropic's messages API.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Anthropic {
    pub base_url: String,
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    pub model: String,
    pub context_length: u64,
    pub max_tokens: u64,
    /// Requests that are made at once; no limit when empty.
    pub parallel_requests: Option<usize>,
}

impl Config {
    /// Returns how many requests may be with the configured server at once.
    pub fn parallel_requests(&self) -> Option<usize> {
        match self.provider {
            ProviderName::Ollama => Some(self.ollama.parallel_requests),
            ProviderName::Lmstudio => Some(self.lmstudio.parallel_requests),
            ProviderName::Openai => self.openai.parallel_requests,
            ProviderName::Anthropic => self.anthropic.parallel_requests,
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            provider: ProviderName::Ollama,
            function_calling: FunctionCalling::Auto,
            constrained_replies: false,
            timeout_seconds: 600,
            local_only: false,
            local_only_repositories: Vec::new(),
            local_only_label: None,
            local_endpoints: Vec::new(),
            ollama: Ollama::default(),
            lmstudio: LmStudio::default(),
            openai: OpenAi::default(),
            anthropic: Anthropic::default(),
        }
    }
}

impl Default for Ollama {
    fn default() -> Self {
        Self {
            endpoint: "http://127.0.0.1:11434".to_owned(),
            model: "qwen3-coder:30b".to_owned(),
            context_length: 32_768,
            keep_alive: "30m".to_owned(),
            parallel_requests: 1,
        }
    }
}

impl Default for LmStudio {
    fn default() -> Self {
        Self {
            base_url: "http://127.0.0.1:1234/v1".to_owned(),
            model: "qwen/qwen3-coder-30b".to_owned(),
            context_length: 32_768,
            parallel_requests: 1,
        }
    }
}

impl Default for OpenAi {
    fn default() -> Self {
        Self {
            base_url: "https://api.openai.com/v1".to_owned(),
            api_key: None,
            model: "gpt-5-mini".to_owned(),
            context_length: 128_000,
            max_tokens: None,
            parallel_requests: None,
        }
    }
}

impl Default for Anthropic {
    fn default() -> Self {
        Self {
            base_url: "https://api.anthropic.com".to_owned(),
            api_key: None,
            model: "claude-sonnet-4-5".to_owned(),
            context_length: 200_000,
            max_tokens: 8_192,
            parallel_requests: None,
        }
    }
}

impl<'de> Deserialize<'de> for FunctionCalling {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;

        impl serde::de::Visitor<'_> for Words {
            type Value = FunctionCalling;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("auto, true or false")
            }

            fn visit_bool<E>(self, is_on: bool) -> Result<FunctionCalling, E> {
                Ok(if is_on {
                    FunctionCalling::On
                } else {
                    FunctionCalling::Off
                })
            }

            fn visit_str<E: serde::de::Error>(self, word: &str) -> Result<FunctionCalling, E> {
                // Values from the environment arrive as text.
                match word.trim() {
                    "auto" => Ok(FunctionCalling::Auto),
                    "true" => Ok(FunctionCalling::On),
                    "false" => Ok(FunctionCalling::Off),
                    other => Err(E::invalid_value(serde::de::Unexpected::Str(other), &self)),
                }
            }
        }

        deserializer.deserialize_any(Words)
    }
}

impl Serialize for FunctionCalling {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::On => serializer.serialize_bool(true),
            Self::Off => serializer.serialize_bool(false),
        }
    }
}

impl JsonSchema for FunctionCalling {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "FunctionCalling".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "enum": ["auto", true, false] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn function_calling_is_written_as_a_word_or_as_true_and_false() {
        for (text, expected, written) in [
            ("auto", FunctionCalling::Auto, "auto"),
            ("true", FunctionCalling::On, "true"),
            ("false", FunctionCalling::Off, "false"),
            ("\"true\"", FunctionCalling::On, "true"),
        ] {
            let read: FunctionCalling = serde_yaml::from_str(text).unwrap();
            assert_eq!(read, expected);
            assert_eq!(serde_yaml::to_string(&read).unwrap().trim(), written);
        }
        let error = serde_yaml::from_str::<FunctionCalling>("perhaps")
            .unwrap_err()
            .to_string();
        assert!(error.contains("expected auto, true or false"), "{error}");
    }
}
