//! Whose model it is: the user's own, if one is named by the usual variables and answers, else
//! recorded replies.

use std::fmt;
use std::time::Duration;

use coding_agent::config::Config;
use reqwest::StatusCode;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::fake::model::Model;
use crate::recorded;

/// How long a model server may take to say that it is there.
const PATIENCE: Duration = Duration::from_secs(20);

/// The variables that say that there is a model, most decisive first, as the program itself reads
/// them.
const VARIABLES: [&str; 4] = ["OPENAI_API_KEY", "OPENAI_BASE_URL", "OLLAMA_HOST", "LMSTUDIO_BASE_URL"];

/// The model of this run, and why it is the one.
pub(crate) enum Choice {
    Own {
        section: Value,
        what: String,
    },
    Recorded {
        model: Box<Model>,
        /// Judges plans and result, where they are reviewed.
        reviewer: Option<Box<Model>>,
        why: String,
    },
}

/// Asks the servers that the environment names, one after the other. A model of the user's reviews
/// its own work.
pub(crate) async fn choose(is_reviewed: bool) -> Choice {
    let mut refusals = Vec::new();
    for variable in VARIABLES {
        if set(variable).is_none() {
            continue;
        }
        match own(variable).await {
            Ok((section, what)) => return Choice::Own { section, what },
            Err(reason) => refusals.push(format!("{variable} is set, but {reason}")),
        }
    }
    let why = if refusals.is_empty() {
        "set OPENAI_API_KEY, OLLAMA_HOST or LMSTUDIO_BASE_URL to watch your own".to_owned()
    } else {
        refusals.join("; ")
    };
    let model = Box::new(recorded::start(is_reviewed).await);
    let reviewer = if is_reviewed {
        Some(Box::new(recorded::reviewer().await))
    } else {
        None
    };
    Choice::Recorded { model, reviewer, why }
}

impl Choice {
    pub(crate) fn is_recorded(&self) -> bool {
        matches!(self, Self::Recorded { .. })
    }

    /// Returns the section `llm` of the configuration.
    pub(crate) fn section(&self) -> Value {
        match self {
            Self::Own { section, .. } => section.clone(),
            Self::Recorded { model, reviewer, .. } => {
                let address =
                    |model: &Model| json!({ "base_url": model.openai_address(), "model": crate::fake::model::NAME });
                let mut section = json!({ "provider": "openai", "openai": address(model) });
                if let Some(reviewer) = reviewer {
                    section["models"] = json!({ "critic": address(reviewer) });
                    section["models"]["critic"]["provider"] = json!("openai");
                    section["roles"] = json!({ "reviewer": "critic" });
                }
                section
            }
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Own { what, .. } => write!(
                formatter,
                "your own: {what}. It takes as long as it takes; Ctrl-C ends it"
            ),
            Self::Recorded { why, .. } => write!(formatter, "recorded replies; {why}"),
        }
    }
}

/// Returns the configuration of the model that `variable` names, and its name for people; or why it
/// cannot be used.
async fn own(variable: &str) -> Result<(Value, String), String> {
    let family = variable.split('_').next().unwrap_or_default();
    // The program's own reading of the variables, of this provider alone.
    let config = Config::from_environment(&|name| set(name).filter(|_| name.starts_with(family)))
        .map_err(|faults| faults.first().map_or_else(String::new, ToString::to_string))?;
    let llm = config.llm;
    match family {
        "OPENAI" => {
            let (address, key) = (llm.openai.base_url, llm.openai.api_key);
            let listed = ask(
                &format!("{}/models", address.trim_end_matches('/')),
                key.as_ref().map(ExposeSecret::expose_secret),
            )
            .await?;
            let model = chosen("OPENAI_MODEL", Some(&llm.openai.model), &names(&listed, "data", "id"))?;
            let mut openai = json!({ "base_url": address, "model": model });
            if key.is_some() {
                // Read from the environment by the program, so that the key is in no file.
                openai["api_key"] = json!("${OPENAI_API_KEY}");
            }
            Ok((
                json!({ "provider": "openai", "openai": openai }),
                format!("{model} at {address}"),
            ))
        }
        "OLLAMA" => {
            let address = llm.ollama.endpoint;
            let listed = ask(&format!("{address}/api/tags"), None).await?;
            let model = chosen("OLLAMA_MODEL", None, &names(&listed, "models", "name"))?;
            let ollama = json!({ "endpoint": address, "model": model });
            Ok((
                json!({ "provider": "ollama", "ollama": ollama }),
                format!("{model}, Ollama at {address}"),
            ))
        }
        _ => {
            let address = llm
                .lmstudio
                .base_url
                .trim_end_matches('/')
                .trim_end_matches("/v1")
                .to_owned();
            let listed = ask(&format!("{address}/v1/models"), None).await?;
            let model = chosen("LMSTUDIO_MODEL", None, &names(&listed, "data", "id"))?;
            let lmstudio = json!({ "base_url": address, "model": model });
            Ok((
                json!({ "provider": "lmstudio", "lmstudio": lmstudio }),
                format!("{model}, LM Studio at {address}"),
            ))
        }
    }
}

/// Asks a server for its models. One that keeps no list answers with nothing, which is an answer.
async fn ask(address: &str, key: Option<&str>) -> Result<Value, String> {
    let client = reqwest::Client::builder().timeout(PATIENCE).build();
    let client = client.map_err(|error| error.to_string())?;
    let mut request = client.get(address);
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    let answer = request.send().await;
    let answer = answer.map_err(|error| format!("nothing answers at {address}: {}", root_of(&error)))?;
    match answer.status() {
        StatusCode::NOT_FOUND | StatusCode::METHOD_NOT_ALLOWED => Ok(Value::Null),
        status if status.is_success() => answer
            .json()
            .await
            .map_err(|_| format!("{address} answers with no JSON")),
        status => Err(format!("{address} answers {status}")),
    }
}

fn root_of(error: &dyn std::error::Error) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    root.to_string()
}

fn names(listed: &Value, list: &str, field: &str) -> Vec<String> {
    let models = listed[list].as_array().into_iter().flatten();
    let names = models.filter_map(|model| model[field].as_str());
    // These answer no questions.
    names
        .filter(|name| !name.contains("embed"))
        .map(str::to_owned)
        .collect()
}

/// Returns the model that the user names, else the usual one if it is there, else the first.
fn chosen(variable: &str, usual: Option<&str>, listed: &[String]) -> Result<String, String> {
    if let Some(named) = set(variable) {
        return Ok(named);
    }
    let usual = usual.filter(|usual| listed.is_empty() || listed.iter().any(|name| name == usual));
    usual
        .or(listed.first().map(String::as_str))
        .map(str::to_owned)
        .ok_or_else(|| format!("the server has no model; load one, or name it in {variable}"))
}

fn set(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}
