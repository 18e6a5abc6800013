//! The four providers over real HTTP, against the scripted model of the world tests.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::allow_attributes,
    unreachable_pub,
    reason = "a test that cannot go on must fail, and a test binary exports nothing"
)]
#![allow(
    dead_code,
    clippy::return_self_not_must_use,
    clippy::must_use_candidate,
    clippy::unused_async,
    reason = "the fake is shared with the world tests, which use other parts of it"
)]

#[path = "../world/fake"]
mod fake {
    pub mod model;
    pub mod tls;
}

mod certificates;
mod failures;
mod fallbacks;
mod fake_model;
mod pictures;
mod protocols;
mod streaming;
mod thinking;
mod windows;

use std::sync::Arc;

use coding_agent::conversation::{ToolCall, ToolResult, ToolSpec};
use coding_agent::llm::chat::Chat;
use coding_agent::llm::config::role::Role;
use coding_agent::llm::config::{Config, ProviderName};
use coding_agent::llm::error::LlmError;
use coding_agent::llm::model::Model as Llm;
use coding_agent::llm::models::Models;
use coding_agent::secret::{Clean, Redactor};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use fake::model::Model;

const PROVIDERS: [ProviderName; 4] = [
    ProviderName::Ollama,
    ProviderName::Lmstudio,
    ProviderName::Openai,
    ProviderName::Anthropic,
];

const KEY: &str = "sk-test-0123456789abcdef";

/// Returns a configuration that points `provider` to the fake.
fn config(model: &Model, provider: ProviderName) -> Config {
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    let mut config = Config {
        provider,
        timeout_seconds: 20,
        ..Config::default()
    };
    let name = fake::model::NAME.to_owned();
    config.ollama.endpoint = model.address();
    config.ollama.model.clone_from(&name);
    config.lmstudio.base_url = model.address();
    config.lmstudio.model.clone_from(&name);
    config.openai.base_url = model.openai_address();
    config.openai.model.clone_from(&name);
    config.openai.api_key = Some(KEY.into());
    config.anthropic.base_url = model.address();
    config.anthropic.model = name;
    config.anthropic.api_key = Some(KEY.into());
    config
}

/// Returns the model that does the work.
fn model_of(config: &Config) -> Result<Llm, LlmError> {
    Ok(Models::new(config)?.of(Role::Worker, None))
}

fn llm(model: &Model, provider: ProviderName) -> Llm {
    model_of(&config(model, provider)).unwrap()
}

/// Returns a conversation in which the task was given.
fn chat(llm: &Llm, native: bool) -> Chat {
    let tools: Arc<[ToolSpec]> = Arc::new([tool("workspace/write_file"), tool("odd.server/a tool")]);
    let mut chat = llm.chat(tools, native, CancellationToken::new());
    chat.send_system_prompt(&clean("You are a coding agent."));
    chat.send_user_message(&clean("Greet the reader."));
    chat
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: "Does something.".to_owned(),
        schema: json!({ "type": "object", "properties": { "path": { "type": "string" } } }),
    }
}

fn result(call: &ToolCall) -> ToolResult {
    ToolResult {
        call: call.clone(),
        output: "written".to_owned(),
        is_error: false,
    }
}

fn clean(text: &str) -> Clean {
    Redactor::new(&[]).clean(text)
}
