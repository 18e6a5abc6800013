//! The servers: llama.cpp's, which is started here and ends with this program, and an Ollama that
//! runs already.

use std::ffi::OsStr;
use std::time::Duration;

use anyhow::Context;
use coding_agent_harness::llama;
use serde_json::{Value, json};
use tokio::process::Child;

/// The window of both, in tokens: the smallest that the program takes, since every token of it
/// costs time.
pub const WINDOW: u64 = 4_096;

const STARTING_TIME: Duration = Duration::from_mins(1);

/// The longest reply that is let be written, where the protocol can say so.
const LONGEST_REPLY: u64 = 120;

pub struct Server {
    pub kind: Kind,
    pub address: String,
    model: String,
    _child: Option<Child>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Llama,
    Ollama,
}

impl Server {
    /// Starts llama.cpp's server.
    pub async fn llama() -> anyhow::Result<Self> {
        let (child, address) = llama::start(&[OsStr::new(&WINDOW.to_string())], STARTING_TIME).await?;
        Ok(Self {
            kind: Kind::Llama,
            address,
            model: "smollm2".to_owned(),
            _child: Some(child),
        })
    }

    /// Returns the Ollama that `OLLAMA_HOST` names, with the model of `OLLAMA_MODEL` or the
    /// smallest it has.
    pub async fn ollama() -> anyhow::Result<Option<Self>> {
        let Some(host) = std::env::var("OLLAMA_HOST").ok().filter(|host| !host.is_empty()) else {
            return Ok(None);
        };
        let address = if host.contains("://") {
            host
        } else {
            format!("http://{host}")
        };
        let address = address.trim_end_matches('/').to_owned();
        let model = match std::env::var("OLLAMA_MODEL").ok().filter(|model| !model.is_empty()) {
            Some(model) => model,
            None => smallest_of(&address).await?,
        };
        Ok(Some(Self {
            kind: Kind::Ollama,
            address,
            model,
            _child: None,
        }))
    }

    pub fn describe(&self) -> String {
        let name = match self.kind {
            Kind::Llama => "llama.cpp",
            Kind::Ollama => "Ollama",
        };
        format!("{name} with {} and a window of {WINDOW} tokens:", self.model)
    }

    /// Returns the section `llm` of a configuration that reaches the server at `address`, through
    /// the relay, and believes in this window.
    pub fn section(&self, address: &str, window: u64) -> Value {
        let model = &self.model;
        match self.kind {
            Kind::Llama => json!({
                "provider": "openai",
                "openai": {
                    "base_url": format!("{address}/v1"),
                    "model": model,
                    "context_length": window,
                    "max_tokens": LONGEST_REPLY,
                },
            }),
            Kind::Ollama => json!({
                "provider": "ollama",
                "ollama": { "endpoint": address, "model": model, "context_length": window },
            }),
        }
    }
}

async fn smallest_of(address: &str) -> anyhow::Result<String> {
    let client = reqwest::Client::builder().no_proxy().timeout(STARTING_TIME).build()?;
    let listed = client.get(format!("{address}/api/tags")).send().await;
    let listed: Value = listed
        .with_context(|| format!("OLLAMA_HOST is set, but no Ollama answers at {address}"))?
        .json()
        .await?;
    let models = listed["models"].as_array().cloned().unwrap_or_default();
    let smallest = models
        .iter()
        .min_by_key(|model| model["size"].as_u64().unwrap_or(u64::MAX));
    let name = smallest.and_then(|model| model["name"].as_str());
    Ok(name
        .context("the Ollama of OLLAMA_HOST has no model; `ollama pull` one, or name it in OLLAMA_MODEL")?
        .to_owned())
}
