//! The model that is measured: behind an address that speaks OpenAI's protocol, an Ollama, or a file
//! on llama.cpp's server, which is started here and ends with this program.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent_harness::build;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

const STARTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/real_model/server.py");
/// A file of gigabytes is read.
const STARTING_TIME: Duration = Duration::from_mins(5);
/// The longest time for one reply of the floor.
const PATIENCE: Duration = Duration::from_mins(15);
/// The window that a file is loaded with, unless `WINDOW` says another.
const WINDOW: u64 = 8_192;
/// The longest reply of a model that is started here.
const LONGEST_REPLY: u64 = 1_024;

pub struct Server {
    pub model: String,
    /// With `/v1` at its end.
    base: String,
    key: String,
    provider: Value,
    client: reqwest::Client,
    _child: Option<Child>,
}

/// A reply, with its tokens.
pub struct Reply {
    pub text: String,
    pub input: u64,
    pub output: u64,
    pub took: Duration,
}

fn said(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Server {
    /// Returns the model that the environment names.
    pub async fn of_environment() -> anyhow::Result<Self> {
        if let Some(file) = said("MODEL_FILE") {
            return Self::of_file(Path::new(&file)).await;
        }
        if let Some(host) = said("OLLAMA_HOST") {
            let address = if host.contains("://") {
                host
            } else {
                format!("http://{host}")
            };
            let address = address.trim_end_matches('/').to_owned();
            let model =
                said("OLLAMA_MODEL").context("OLLAMA_MODEL is not set: it names one of the models of OLLAMA_HOST")?;
            let provider = json!({ "provider": "ollama", "ollama": { "endpoint": address, "model": model } });
            return Self::new(model, format!("{address}/v1"), String::new(), provider, None);
        }
        let base = said("OPENAI_BASE_URL").context(
            "no model is named: set OPENAI_BASE_URL with OPENAI_MODEL, OLLAMA_HOST with OLLAMA_MODEL, or MODEL_FILE, a GGUF file",
        )?;
        let model = said("OPENAI_MODEL").context("OPENAI_MODEL is not set: it names the model of OPENAI_BASE_URL")?;
        let key = said("OPENAI_API_KEY").unwrap_or_else(|| "none".to_owned());
        let provider = json!({ "provider": "openai", "openai": { "base_url": base, "api_key": key, "model": model } });
        Self::new(model, base.trim_end_matches('/').to_owned(), key, provider, None)
    }

    async fn of_file(file: &Path) -> anyhow::Result<Self> {
        anyhow::ensure!(file.is_file(), "MODEL_FILE={} is no file", file.display());
        let installed = build::beside("test-model")?;
        let (python, log) = (installed.join("bin/python"), installed.join("server.log"));
        anyhow::ensure!(
            python.exists(),
            "{} is missing; `scripts/setup test-model` makes it",
            python.display()
        );
        let window = said("WINDOW").and_then(|window| window.parse().ok()).unwrap_or(WINDOW);
        let threads = said("THREADS").unwrap_or_default();
        let mut child = Command::new(python)
            .arg(STARTER)
            .arg(window.to_string())
            .arg(file)
            .arg(&threads)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .context("llama.cpp's server cannot be started")?;
        let stdout = child.stdout.take().context("the server has no stdout")?;
        let mut lines = BufReader::new(stdout).lines();
        let first = tokio::time::timeout(STARTING_TIME, lines.next_line()).await;
        let address = first
            .context("llama.cpp's server took too long to start")??
            .with_context(|| format!("llama.cpp's server ended; {} tells why", log.display()))?;
        let model = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let base = format!("{address}/v1");
        let provider = json!({
            "provider": "openai",
            // Models of this size write calls as JSON, and keep to a form that the server enforces.
            "function_calling": false,
            "constrained_replies": true,
            "openai": {
                "base_url": base, "api_key": "none", "model": model, "context_length": window, "max_tokens": LONGEST_REPLY,
            },
        });
        Self::new(model, base, "none".to_owned(), provider, Some(child))
    }

    fn new(model: String, base: String, key: String, provider: Value, child: Option<Child>) -> anyhow::Result<Self> {
        Ok(Self {
            model,
            base,
            key,
            provider,
            client: reqwest::Client::builder().timeout(PATIENCE).build()?,
            _child: child,
        })
    }

    /// Returns the section `llm` of the program's configuration.
    pub fn section(&self) -> Value {
        let mut section = self.provider.clone();
        section["timeout_seconds"] = json!(PATIENCE.as_secs());
        section
    }

    /// Tells whether calls go through the protocol's own fields.
    pub fn takes_native_calls(&self) -> bool {
        self.provider["function_calling"] != json!(false)
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// Asks one question, with nothing around it.
    pub async fn ask(&self, question: &str) -> anyhow::Result<Reply> {
        let begun = Instant::now();
        let body = json!({
            "model": self.model, "temperature": 0, "max_tokens": 2 * LONGEST_REPLY,
            "messages": [{ "role": "user", "content": question }],
        });
        let url = format!("{}/chat/completions", self.base);
        let answer = self
            .client
            .post(url)
            .header("authorization", format!("Bearer {}", self.key))
            .header("content-type", "application/json")
            .body(body.to_string())
            .send()
            .await?
            .error_for_status()?;
        let answer: Value = serde_json::from_str(&answer.text().await?)?;
        let count = |name: &str| answer["usage"][name].as_u64().unwrap_or_default();
        Ok(Reply {
            text: answer["choices"][0]["message"]["content"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            input: count("prompt_tokens"),
            output: count("completion_tokens"),
            took: begun.elapsed(),
        })
    }
}
