//! The section `llm` of the configuration.

pub mod function_calling; // whether native tool calls are used
pub mod keep_alive; // how long a model stays loaded
mod prices; // what tokens cost
pub mod role; // what a model is asked for
pub mod health; // how servers of local models are kept ready
pub mod model_config; // each model with all of its settings

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::certificates::Trust;
use crate::llm::config::function_calling::FunctionCalling;
use crate::llm::config::health::Health;
use crate::llm::config::keep_alive::KeepAlive;
use crate::llm::config::model_config::NamedBy;
use crate::llm::config::role::Role;
pub use prices::{PriceList, Prices};

/// The models that are used, and the ways of using them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The provider, and the section below that configures it.
    pub provider: ProviderName,
    /// Native tool calls: `auto` asks the provider and falls back to JSON in the text.
    pub function_calling: FunctionCalling,
    /// Makes the server hold replies in JSON text to their schema.
    pub constrained_replies: bool,
    /// The form in which the model changes files.
    pub edits: Edits,
    /// A template that replaces the shipped `system_prompt.txt`.
    pub system_prompt_file: Option<PathBuf>,
    /// How long a server may be silent; how long one reply may take where it is not streamed.
    pub timeout_seconds: u64,
    /// How long one streamed reply may take.
    pub reply_seconds: u64,
    /// Only models on this machine or in a private network are used, for everything.
    pub local_only: bool,
    /// Repositories with local models only: `owner/repo`, `owner/*`, `group/*` with all below it.
    pub local_only_repositories: Vec<String>,
    /// Label of items for which only local models are used.
    pub local_only_label: Option<String>,
    /// Hosts that count as local although their addresses are not private.
    pub local_endpoints: Vec<String>,
    /// Whether personal data is masked before models that are not near: `secret.pii`.
    #[serde(skip)]
    pub masks_personal_data: bool,
    /// The one of `models` that turns texts into vectors: `index.embeddings`.
    #[serde(skip)]
    pub embeddings: Option<String>,
    /// Where the model is named: in a file, or by usual variables where there is none.
    #[serde(skip)]
    pub named_by: NamedBy,
    /// How servers of local models are kept ready; they are not looked after when empty.
    pub health: Option<Health>,
    pub ollama: Ollama,
    pub lmstudio: LmStudio,
    pub openai: OpenAi,
    pub anthropic: Anthropic,
    /// Further models, by names of your choice.
    pub models: BTreeMap<String, NamedModel>,
    /// The names of `models` that have roles; the provider's section above has all other roles.
    pub roles: Roles,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ProviderName {
    Ollama,
    Lmstudio,
    Openai,
    Anthropic,
}

/// Who answers for a model under a name: the server of a provider, or a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum NamedProvider {
    Ollama,
    Lmstudio,
    Openai,
    Anthropic,
    /// A program of the operator's on this machine, for the role `reviewer` alone.
    Command,
}

/// The form in which the model changes files.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Edits {
    /// Exact edits; after two in a row that found nothing to edit, whole files are proposed.
    #[default]
    Auto,
    /// Exact edits.
    Exact,
    /// Whole files only, for models that cannot copy a text; without native calls between fences.
    Whole,
}

/// Ollama, through its native API.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct Ollama {
    /// Address of the server.
    pub endpoint: String,
    /// Name of the model.
    pub model: String,
    /// Window in tokens, sent as `num_ctx`.
    pub context_length: u64,
    /// How long the model stays loaded after a call: `30m`, or seconds; `-1` means for ever.
    pub keep_alive: KeepAlive,
    /// Requests that are made at once; further ones wait.
    pub parallel_requests: usize,
    #[serde(flatten)]
    pub options: ModelOptions,
}

/// LM Studio; `/v1` is added to the address if missing.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct LmStudio {
    /// Address of the server; `/v1` is added where it is missing.
    pub base_url: String,
    /// Name of the model, as the server knows it.
    pub model: String,
    /// Window in tokens.
    pub context_length: u64,
    /// Requests that are made at once; further ones wait.
    pub parallel_requests: usize,
    #[serde(flatten)]
    pub options: ModelOptions,
}

/// OpenAI or any server that speaks its chat completions protocol.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct OpenAi {
    /// Address of the server.
    pub base_url: String,
    /// The key that the server asks for.
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// Name of the model, as the server knows it.
    pub model: String,
    /// Window in tokens.
    pub context_length: u64,
    /// Longest reply in tokens; left to the server when empty.
    pub max_tokens: Option<u64>,
    /// Requests that are made at once; no limit when empty.
    pub parallel_requests: Option<usize>,
    #[serde(flatten)]
    pub options: ModelOptions,
}

/// Anthropic's messages API.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(extend("additionalProperties" = false))]
pub struct Anthropic {
    /// Address of the server.
    pub base_url: String,
    /// The key that the server asks for.
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// Name of the model, as the server knows it.
    pub model: String,
    /// Window in tokens.
    pub context_length: u64,
    /// Longest reply in tokens.
    pub max_tokens: u64,
    /// Requests that are made at once; no limit when empty.
    pub parallel_requests: Option<usize>,
    #[serde(flatten)]
    pub options: ModelOptions,
}

/// A model under a name. Keys that its provider does not have are left out.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub struct NamedModel {
    pub provider: NamedProvider,
    /// Address of an Ollama server; the default of the provider's section when empty.
    pub endpoint: Option<String>,
    /// Address of any other server; the default of the provider's section when empty.
    pub base_url: Option<String>,
    /// The key that the server asks for.
    #[schemars(with = "Option<String>")]
    pub api_key: Option<SecretString>,
    /// Name of the model, as the server knows it.
    #[serde(default)]
    pub model: String,
    /// The program and its arguments, for `command`: it reads the question from its stdin, and its
    /// answer is what it writes to its stdout.
    #[serde(default)]
    pub command: Vec<String>,
    /// All variables that the program of `command` gets.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, String>", extend("default" = {}))]
    pub env: BTreeMap<String, SecretString>,
    /// For `command`: the program sends what it reads to no other machine, so it may judge
    /// confidential work.
    pub local: Option<bool>,
    /// Window in tokens; the default of the provider's section when empty.
    pub context_length: Option<u64>,
    /// Longest reply in tokens, for `openai` and `anthropic`; the default of the provider's section
    /// when empty.
    pub max_tokens: Option<u64>,
    /// As `ollama.keep_alive`, for `ollama`; the default of the provider's section when empty.
    pub keep_alive: Option<KeepAlive>,
    /// Requests that are made at once; further ones wait. The default of the provider's section
    /// when empty.
    pub parallel_requests: Option<usize>,
    #[serde(flatten)]
    pub options: ModelOptions,
}

/// Settings that every model may have.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelOptions {
    /// In the place of `llm.timeout_seconds`.
    pub timeout_seconds: Option<u64>,
    /// Whether replies are sent as they are made; true when empty.
    pub stream: Option<bool>,
    /// Whether the model takes pictures. Without it the model is told only that there are some.
    pub pictures: bool,
    /// Randomness of the replies; the server's own when empty.
    pub temperature: Option<f64>,
    /// Makes a server that can do so give the same reply to the same request.
    pub seed: Option<u64>,
    /// How much a reasoning model thinks, in the provider's own words, such as `low`.
    pub reasoning_effort: Option<String>,
    /// Headers of each request, such as those that a gateway wants.
    #[schemars(with = "BTreeMap<String, String>", extend("default" = {}))]
    pub headers: BTreeMap<String, SecretString>,
    /// Further fields of each request for a reply; they replace those of the program.
    pub extra_body: Map<String, Value>,
    /// File with certificates (PEM) that connections to the server trust besides the machine's and
    /// those of the top-level `ca_file`.
    pub ca_file: Option<PathBuf>,
    /// Whom connections to the server trust, when `ca_file` was read.
    #[serde(skip)]
    pub trust: Trust,
    /// Name of a model that is asked while this one cannot be reached or has reached its limit.
    pub fallback: Option<String>,
    /// For the cost of its replies.
    pub prices: Option<Prices>,
}

/// The name of the model that has each role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Roles {
    /// Reads the repository and plans.
    pub planner: Option<String>,
    /// Does the work.
    pub worker: Option<String>,
    /// Reviews plans and results.
    pub reviewer: Option<String>,
    /// Sums a long conversation up.
    pub summarizer: Option<String>,
    /// Talks with people.
    pub chat: Option<String>,
    /// Decides what a message is about.
    pub classifier: Option<String>,
    /// Takes every role's place in confidential work.
    pub local_only: Option<String>,
}

impl ProviderName {
    /// Returns the provider's name as it is written in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ollama => "ollama",
            Self::Lmstudio => "lmstudio",
            Self::Openai => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

impl NamedProvider {
    /// Returns the provider whose server answers; `None` for a program.
    pub const fn server(self) -> Option<ProviderName> {
        match self {
            Self::Ollama => Some(ProviderName::Ollama),
            Self::Lmstudio => Some(ProviderName::Lmstudio),
            Self::Openai => Some(ProviderName::Openai),
            Self::Anthropic => Some(ProviderName::Anthropic),
            Self::Command => None,
        }
    }
}

impl Roles {
    /// Returns the model that is named for `role`.
    pub fn named(&self, role: Role) -> Option<&str> {
        let name = match role {
            Role::Planner => &self.planner,
            Role::Worker => &self.worker,
            Role::Reviewer => &self.reviewer,
            Role::Summarizer => &self.summarizer,
            Role::Chat => &self.chat,
            Role::Classifier => &self.classifier,
            Role::LocalOnly => &self.local_only,
        };
        name.as_deref()
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            provider: ProviderName::Ollama,
            function_calling: FunctionCalling::Auto,
            constrained_replies: false,
            edits: Edits::Auto,
            system_prompt_file: None,
            timeout_seconds: 600,
            reply_seconds: 3_600,
            local_only: false,
            local_only_repositories: Vec::new(),
            local_only_label: None,
            local_endpoints: Vec::new(),
            masks_personal_data: false,
            embeddings: None,
            named_by: NamedBy::File,
            health: None,
            ollama: Ollama::default(),
            lmstudio: LmStudio::default(),
            openai: OpenAi::default(),
            anthropic: Anthropic::default(),
            models: BTreeMap::new(),
            roles: Roles::default(),
        }
    }
}

impl Default for Ollama {
    fn default() -> Self {
        Self {
            endpoint: "http://127.0.0.1:11434".to_owned(),
            model: "qwen3-coder:30b".to_owned(),
            context_length: 32_768,
            keep_alive: KeepAlive::Text("30m".to_owned()),
            parallel_requests: 1,
            options: ModelOptions::default(),
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
            options: ModelOptions::default(),
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
            options: ModelOptions::default(),
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
            options: ModelOptions::default(),
        }
    }
}
