//! Configures a local task without a file from variables that users of models have set anyway.
//!
//! `OPENAI_API_KEY` or `OPENAI_BASE_URL`, `OLLAMA_HOST`, `LMSTUDIO_BASE_URL`, `ANTHROPIC_API_KEY`:
//! the first that is set decides, and Ollama on this machine if none is.

use serde_json::Map;
use serde_json::Value;
use serde_json::json;

use super::Variables;

/// Provider, which is also its section of `llm`, and the variables for its keys.
const PROVIDERS: [(&str, &[(&str, &str)]); 4] = [
    (
        "openai",
        &[
            ("base_url", "OPENAI_BASE_URL"),
            ("api_key", "OPENAI_API_KEY"),
            ("model", "OPENAI_MODEL"),
        ],
    ),
    ("ollama", &[("endpoint", "OLLAMA_HOST"), ("model", "OLLAMA_MODEL")]),
    (
        "lmstudio",
        &[("base_url", "LMSTUDIO_BASE_URL"), ("model", "LMSTUDIO_MODEL")],
    ),
    (
        "anthropic",
        &[
            ("base_url", "ANTHROPIC_BASE_URL"),
            ("api_key", "ANTHROPIC_API_KEY"),
            ("model", "ANTHROPIC_MODEL"),
        ],
    ),
];
/// Variables that show that their provider is in use; a model's name or a shared address does not.
const DECISIVE: [&str; 5] = [
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OLLAMA_HOST",
    "LMSTUDIO_BASE_URL",
    "ANTHROPIC_API_KEY",
];

/// Returns the content of a configuration file with the same settings.
pub(super) fn as_file(environment: Variables<'_>) -> Value {
    let set = |name: &str| environment(name).filter(|value| !value.trim().is_empty());
    let is_there = |(_, keys): &&(&str, &[(&str, &str)])| {
        let mut names = keys.iter().map(|(_, name)| *name);
        names.any(|name| DECISIVE.contains(&name) && set(name).is_some())
    };
    let provider = PROVIDERS
        .iter()
        .find(is_there)
        .map_or("ollama", |(provider, _)| provider);
    let mut llm = Map::new();
    llm.insert("provider".to_owned(), provider.into());
    for (section, keys) in PROVIDERS {
        let given = keys
            .iter()
            .filter_map(|(key, name)| Some(((*key).to_owned(), set(name)?.into())));
        llm.insert(section.to_owned(), Value::Object(given.collect()));
    }
    if let Some(endpoint) = llm["ollama"].get_mut("endpoint") {
        *endpoint = ollama_address(endpoint.as_str().unwrap_or_default()).into();
    }
    let folder = set("XDG_STATE_HOME").or_else(|| set("HOME").map(|home| format!("{home}/.local/state")));
    folder.map_or_else(
        || json!({ "llm": llm }),
        |folder| {
            json!({
                "llm": llm,
                "state_dir": format!("{folder}/coding-agent/state"),
                "logs": { "directory": format!("{folder}/coding-agent/logs") },
            })
        },
    )
}

/// Returns the variable that the value of a key was taken from, if it was.
pub(super) fn of_key(key: &str, environment: Variables<'_>) -> Option<&'static str> {
    let (section, key) = key.strip_prefix("llm.")?.split_once('.')?;
    let (_, keys) = PROVIDERS.into_iter().find(|(provider, _)| *provider == section)?;
    let (_, name) = keys.iter().find(|(known, _)| *known == key)?;
    environment(name)
        .is_some_and(|value| !value.trim().is_empty())
        .then_some(*name)
}

/// Converts `OLLAMA_HOST`, on which the server listens (host, port or both), to a URL.
fn ollama_address(host: &str) -> String {
    let host = host.trim().trim_end_matches('/');
    let (scheme, rest) = host.split_once("://").unwrap_or(("http", host));
    let rest = rest.replace("0.0.0.0", "127.0.0.1");
    let has_port = rest
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    match (rest.starts_with(':'), has_port || scheme == "https") {
        (true, _) => format!("{scheme}://127.0.0.1{rest}"),
        (false, true) => format!("{scheme}://{rest}"),
        (false, false) => format!("{scheme}://{rest}:11434"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_ollama_server_listens_on_becomes_an_address() {
        for (host, address) in [
            ("0.0.0.0", "http://127.0.0.1:11434"),
            (":1234", "http://127.0.0.1:1234"),
            ("gpu:1234", "http://gpu:1234"),
            ("gpu", "http://gpu:11434"),
            ("https://gpu.example.com/", "https://gpu.example.com"),
        ] {
            assert_eq!(ollama_address(host), address);
        }
    }
}
