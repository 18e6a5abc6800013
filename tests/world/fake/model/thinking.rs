//! A model that thinks before it calls, and a server that wants the thoughts back: in chat
//! completions as `DeepSeek` and Kimi do, with Gemini's signature of the first call; in messages as
//! Anthropic does.

use serde_json::{Value, json};

use super::Model;
use super::conversation::{Protocol, Request};

/// Whether the model thinks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Thinking {
    #[default]
    Off,
    /// Its calls are refused without what it thought.
    Demanded,
}

impl Model {
    /// Makes the model think before each reply, and refuse its own calls without what it thought.
    pub fn thinks(&self) {
        self.lock().thinking = Thinking::Demanded;
    }
}

/// Adds the thoughts to a whole reply.
pub(super) fn add(request: &Request, body: &mut Value) {
    let turn = request.messages.len();
    match request.protocol {
        Protocol::ChatCompletions => {
            let message = &mut body["choices"][0]["message"];
            message["reasoning_content"] = json!(format!("Thought {turn}."));
            if let Some(first) = message.get_mut("tool_calls").and_then(|calls| calls.get_mut(0)) {
                let signature = format!("signature of {}", first["id"]);
                first["extra_content"] = json!({ "google": { "thought_signature": signature } });
            }
        }
        Protocol::Messages => {
            if let Some(content) = body["content"].as_array_mut() {
                let signature = format!("signature {turn}");
                let thought = format!("Thought {turn}.");
                content.insert(
                    0,
                    json!({ "type": "redacted_thinking", "data": format!("hidden {turn}") }),
                );
                content.insert(
                    0,
                    json!({ "type": "thinking", "thinking": thought, "signature": signature }),
                );
            }
        }
        Protocol::Ollama => body["message"]["thinking"] = json!(format!("Thought {turn}.")),
    }
}

/// Returns the words in which the server refuses a conversation whose calls lack a thought.
pub(super) fn refusal(request: &Request) -> Option<String> {
    let messages = request.body["messages"].as_array()?;
    let replies = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| message["role"] == "assistant");
    for (place, message) in replies {
        match request.protocol {
            Protocol::ChatCompletions => {
                let Some(first) = message["tool_calls"].get(0) else {
                    continue;
                };
                if !message["reasoning_content"]
                    .as_str()
                    .is_some_and(|thought| thought.starts_with("Thought "))
                {
                    return Some(format!(
                        "thinking is enabled but reasoning_content is missing in assistant tool call message at index {place}"
                    ));
                }
                let expected = format!("signature of {}", first["id"]);
                if first["extra_content"]["google"]["thought_signature"] != expected.as_str() {
                    return Some("Function call is missing a thought_signature in functionCall parts.".to_owned());
                }
            }
            Protocol::Messages => {
                let blocks = message["content"].as_array()?;
                if !blocks.iter().any(|block| block["type"] == "tool_use") {
                    continue;
                }
                let number = |text: &Value, before: &str| text.as_str()?.strip_prefix(before).map(str::to_owned);
                let thought = number(&blocks[0]["thinking"], "Thought ");
                let signed = number(&blocks[0]["signature"], "signature ").map(|number| format!("{number}."));
                let is_hidden = blocks
                    .get(1)
                    .is_some_and(|block| block["type"] == "redacted_thinking" && block["data"].is_string());
                if thought.is_none() || thought != signed || !is_hidden {
                    return Some(format!(
                        "messages.{place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is \
                         enabled, a final `assistant` message must start with a thinking block",
                        blocks[0]["type"].as_str().unwrap_or_default()
                    ));
                }
            }
            Protocol::Ollama => {}
        }
    }
    None
}
