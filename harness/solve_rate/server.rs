//! The model that is measured: behind an address that speaks OpenAI's protocol, an Ollama, or a
//! file on llama.cpp's server, which is started here and ends with this program.

use std::ffi::OsStr;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent_harness::llama;
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::process::Child;

use crate::setting::{Anew, Setting, said};

/// A file of gigabytes is read.
const STARTING_TIME: Duration = Duration::from_mins(5);
/// The seed of the program's requests. Where the program wants another reply, it sends another
/// seed; without one, the server takes its own, which is always the same.
const SEED: u64 = 7;
/// The key for a server that asks for none. Clients that others wrote refuse to send a request
/// without one.
const NO_KEY: &str = "none";
/// How often a server that does not answer is asked whether it is there, the pause between, and the
/// longest wait for the answer.
const LOOKS: usize = 3;
const PAUSE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_secs(10);

pub struct Server {
    pub model: String,
    /// The address, with `/v1` at its end.
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

/// Returns the name of the model that the environment names, without asking for it.
pub fn name() -> anyhow::Result<String> {
    if let Some(file) = said("MODEL_FILE") {
        return Ok(name_of(Path::new(&file)));
    }
    let variable = if said("OLLAMA_HOST").is_some() {
        "OLLAMA_MODEL"
    } else {
        "OPENAI_MODEL"
    };
    said(variable).with_context(|| format!("no model is named: set MODEL_FILE or {variable}"))
}

fn name_of(file: &Path) -> String {
    file.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

impl Server {
    /// Returns the model that the environment names, for work in this setting.
    pub async fn of_environment(setting: &Setting) -> anyhow::Result<Self> {
        if let Some(file) = said("MODEL_FILE") {
            return Self::of_file(Path::new(&file), setting).await;
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
            let base = format!("{address}/v1");
            return Ok(Self::new(model, base, NO_KEY.to_owned(), provider, None));
        }
        let base = said("OPENAI_BASE_URL").context(
            "no model is named: set OPENAI_BASE_URL with OPENAI_MODEL, OLLAMA_HOST with OLLAMA_MODEL, or MODEL_FILE, a GGUF file",
        )?;
        let model = said("OPENAI_MODEL").context("OPENAI_MODEL is not set: it names the model of OPENAI_BASE_URL")?;
        let key = said("OPENAI_API_KEY").unwrap_or_else(|| NO_KEY.to_owned());
        let provider = json!({ "provider": "openai", "openai": { "base_url": base, "api_key": key, "model": model } });
        let base = base.trim_end_matches('/').to_owned();
        Ok(Self::new(model, base, key, provider, None))
    }

    async fn of_file(file: &Path, setting: &Setting) -> anyhow::Result<Self> {
        anyhow::ensure!(file.is_file(), "MODEL_FILE={} is no file", file.display());
        let window = setting.limits.window.unwrap_or_default();
        let (tokens, threads) = (window.to_string(), said("THREADS").unwrap_or_default());
        let arguments = [OsStr::new(&tokens), file.as_os_str(), OsStr::new(&threads)];
        let (child, address) = llama::start(&arguments, STARTING_TIME).await?;
        let model = name_of(file);
        let base = format!("{address}/v1");
        let provider = json!({
            "provider": "openai",
            // Models of this size write calls as JSON, and keep to a form that the server enforces.
            "function_calling": false,
            "constrained_replies": true,
            "openai": {
                "base_url": base, "api_key": NO_KEY, "model": model, "context_length": window,
                "temperature": 0, "seed": SEED,
            },
        });
        Ok(Self::new(model, base, NO_KEY.to_owned(), provider, Some(child)))
    }

    fn new(model: String, base: String, key: String, provider: Value, child: Option<Child>) -> Self {
        Self {
            model,
            base,
            key,
            provider,
            client: reqwest::Client::new(),
            _child: child,
        }
    }

    /// Returns the section `llm` of the program's configuration.
    pub fn section(&self, setting: &Setting) -> Value {
        let mut section = self.provider.clone();
        let reply = setting.limits.reply().as_secs();
        section["timeout_seconds"] = json!(reply);
        section["reply_seconds"] = json!(reply);
        if let Some(openai) = section.get_mut("openai") {
            openai["max_tokens"] = json!(setting.limits.longest_reply());
        }
        if let Some(edits) = setting.edits {
            section["edits"] = json!(edits.name());
        }
        section
    }

    /// Tells whether calls go through the protocol's own fields.
    pub fn takes_native_calls(&self) -> bool {
        self.provider["function_calling"] != json!(false)
    }

    /// Returns the randomness of the program's replies, where it is not left to the server.
    pub fn temperature(&self) -> &Value {
        &self.provider["openai"]["temperature"]
    }

    pub fn base(&self) -> &str {
        &self.base
    }

    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns an error if the server is gone altogether, which no task can be blamed for. Whoever
    /// answers anything at all is there, as is one that takes long for it. The error tells how the
    /// measurement goes on, which has taken `anew` out of the book so far.
    pub async fn ensure_there(&self, anew: Anew) -> anyhow::Result<()> {
        let mut reason = String::new();
        for look in 0..LOOKS {
            if look > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            let asked = self.client.get(format!("{}/models", self.base)).bearer_auth(&self.key);
            reason = match asked.timeout(LOOK).send().await {
                Ok(answer) if is_away(answer.status()) => format!("a proxy answers {}", answer.status()),
                Ok(_) => return Ok(()),
                Err(error) if error.is_timeout() => return Ok(()),
                Err(error) => format!("{:#}", anyhow::Error::from(error)),
            };
        }
        anyhow::bail!(
            "the model's server at {} is gone ({reason}); what was measured is kept, and {} goes on when it is back",
            self.base,
            anew.going_on()
        )
    }

    /// Asks one question, with nothing around it, for a reply of at most `longest` tokens. The error
    /// is a sentence about this one reply.
    pub async fn ask(&self, question: &str, longest: u64, patience: Duration) -> Result<Reply, String> {
        let begun = Instant::now();
        let body = json!({
            "model": self.model, "temperature": 0, "max_tokens": longest,
            "messages": [{ "role": "user", "content": question }],
        });
        let url = format!("{}/chat/completions", self.base);
        let request = self.client.post(url).bearer_auth(&self.key);
        let request = request
            .header("content-type", "application/json")
            .body(body.to_string());
        let answer = request.timeout(patience).send().await;
        let answer = answer.map_err(|error| format!("no reply came: {:#}", anyhow::Error::from(error)))?;
        let status = answer.status();
        let text = answer.text().await;
        let text = text.map_err(|error| format!("the reply broke off: {:#}", anyhow::Error::from(error)))?;
        if !status.is_success() {
            return Err(format!("the model's server answered {status}: {text}"));
        }
        let answer: Value = serde_json::from_str(&text).map_err(|error| format!("the reply is no JSON: {error}"))?;
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

/// Tells whether a proxy says that there is nobody behind it.
fn is_away(status: StatusCode) -> bool {
    matches!(
        status,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT
    )
}
