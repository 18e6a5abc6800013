//! Ollama's native API: its OpenAI endpoint ignores the window and how long the model stays loaded.

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::facts::Facts;
use super::http::Http;
use super::provider::{Answer, Counted, Prompt, Provider, WireCall, arguments, tokens};
use super::{LlmError, Ollama, address, names, roles};
use crate::conversation::{ToolCall, ToolResult};

/// An Ollama server.
pub(super) struct Server {
    facts: Facts,
    keep_alive: Value,
}

/// Returns the configured server.
pub(super) fn server(config: &Ollama) -> Result<(Url, Server), LlmError> {
    let (url, address) = address::parsed(&config.endpoint, "llm.ollama.endpoint")?;
    let model = address::model(&config.model, "llm.ollama.model")?;
    let server = Server {
        facts: Facts {
            name: "ollama",
            window: config.context_length,
            headers: HeaderMap::new(),
            key_mend: "this server wants a key; reach Ollama directly, or configure it as provider `openai`",
            address_mend: format!("check llm.ollama.endpoint ({address}): it is the address without /api or /v1"),
            model_mend: format!("run `ollama pull {model}`, or choose another model in llm.ollama.model"),
            window_mend:
                "lower llm.ollama.context_length to what the model and the memory allow, or raise the limit on \
                the server (OLLAMA_CONTEXT_LENGTH; `ollama ps` shows the window in use)"
                    .to_owned(),
            model,
            address,
        },
        keep_alive: keep_alive(&config.keep_alive),
    };
    Ok((url, server))
}

/// Converts the setting: Ollama reads text as a duration with a unit and only a number as seconds,
/// and `-1` (for ever) must be a number.
fn keep_alive(text: &str) -> Value {
    let text = text.trim();
    text.parse::<i64>()
        .map_or_else(|_| json!(text), |seconds| json!(seconds))
}

#[async_trait]
impl Provider for Server {
    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn chat_url(&self) -> String {
        format!("{}/api/chat", self.facts.address)
    }

    fn body(&self, prompt: &Prompt<'_>) -> Value {
        let call = |call: &ToolCall| json!({ "id": call.id, "function": { "name": names::wire(&call.tool), "arguments": call.args } });
        let result = |result: &ToolResult| {
            json!({
                "role": "tool",
                "tool_name": names::wire(&result.call.tool),
                "tool_call_id": result.call.id,
                "content": result.output,
            })
        };
        let mut body = json!({
            "model": self.facts.model,
            "messages": roles::messages(prompt, call, result),
            "stream": false,
            "keep_alive": self.keep_alive,
            "options": { "num_ctx": self.facts.window },
            // Newer servers then report that the prompt does not fit, instead of cutting it; older
            // ones ignore both.
            "truncate": false,
            "shift": false,
        });
        if let Some(tools) = roles::functions(prompt) {
            body["tools"] = tools;
        }
        if let Some(form) = prompt.form {
            body["format"] = form.clone();
        }
        body
    }

    fn read(&self, answer: &Value) -> Result<Answer, String> {
        let message = answer.get("message").ok_or("the answer holds no message")?;
        let calls = message["tool_calls"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|call| WireCall {
                id: call["id"].as_str().unwrap_or_default().to_owned(),
                name: call["function"]["name"].as_str().unwrap_or_default().to_owned(),
                args: arguments(call["function"].get("arguments")),
            });
        Ok(Answer {
            text: message["content"].as_str().unwrap_or_default().to_owned(),
            calls: calls.collect(),
            cut: answer["done_reason"] == "length",
            // Older servers omit the count when the whole prompt was cached.
            counted: tokens(&answer["prompt_eval_count"]).map(|input| Counted {
                input,
                output: tokens(&answer["eval_count"]).unwrap_or_default(),
                cached: tokens(&answer["prompt_eval_cached_count"]).unwrap_or_default(),
            }),
        })
    }

    async fn takes_native_calls(&self, http: &Http) -> bool {
        match self
            .show(http)
            .await
            .ok()
            .as_ref()
            .and_then(|shown| shown["capabilities"].as_array())
        {
            Some(capabilities) => capabilities.iter().any(|capability| capability == "tools"),
            None => true,
        }
    }

    async fn examine(&self, http: &Http) -> Result<String, LlmError> {
        let facts = &self.facts;
        let version = http.ask(facts, &format!("{}/api/version", facts.address), None).await?;
        let shown = self.show(http).await?;
        let window = shown["model_info"].as_object().and_then(|info| {
            let mut entries = info.iter();
            entries.find_map(|(key, value)| value.as_u64().filter(|_| key.ends_with(".context_length")))
        });
        let has = format!(
            "ollama {} at {} has {}",
            version["version"].as_str().unwrap_or("of an unknown version"),
            facts.address,
            facts.model
        );
        match window {
            Some(window) if window < facts.window => Err(LlmError::Refused {
                what: format!(
                    "{has}, whose window is {window} tokens, and {} are configured",
                    facts.window
                ),
                mend: format!("set llm.ollama.context_length to {window} or less"),
            }),
            Some(window) => Ok(format!("{has}, window {window}, {} used", facts.window)),
            None => Ok(format!(
                "{has}, window {} as configured (the server does not tell)",
                facts.window
            )),
        }
    }
}

impl Server {
    async fn show(&self, http: &Http) -> Result<Value, LlmError> {
        let url = format!("{}/api/show", self.facts.address);
        http.ask(&self.facts, &url, Some(&json!({ "model": self.facts.model })))
            .await
    }
}
