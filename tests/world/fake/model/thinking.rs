//! A model that thinks before it answers, and what the servers of such models send of it and want
//! back. In chat completions: `reasoning_content`, demanded with each call as Kimi does, beside
//! Gemini's signature of the first call, or demanded with each reply as `DeepSeek` does;
//! `reasoning`, as vLLM has it; `reasoning_details`, as `OpenRouter` sends and demands them; or
//! nothing, as with OpenAI. In messages blocks, as Anthropic has them, and with Ollama `thinking`.

use serde_json::{Value, json};

use super::Model;
use super::conversation::{Protocol, Request};

/// Whether the model thinks, and what the server does with its thoughts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Thinking {
    #[default]
    Off,
    /// Its calls are refused without what it thought.
    Demanded,
    /// Where tools are offered, each of its replies is refused without `reasoning_content`, be it
    /// empty.
    DemandedWithAll,
    /// They are sent as `reasoning`, and nobody demands them.
    Offered,
    /// They are sent as `reasoning_details`, and calls are refused without, or with changed ones.
    InDetails,
    /// They are kept, and tools are refused unless the model is asked not to think.
    WithoutTools,
}

impl Model {
    /// Makes the model think before each reply, and refuse its own calls without what it thought.
    pub fn thinks(&self) {
        self.lock().thinking = Thinking::Demanded;
    }

    /// Makes the server of chat completions one that refuses a request with tools in which a reply
    /// comes back without `reasoning_content`, in `DeepSeek`'s words.
    pub fn thinks_as_deepseek(&self) {
        self.lock().thinking = Thinking::DemandedWithAll;
    }

    /// Makes the server of chat completions one that sends thoughts as `reasoning`.
    pub fn thinks_as_vllm(&self) {
        self.lock().thinking = Thinking::Offered;
    }

    /// Makes the server of chat completions one that sends thoughts in details, and demands them
    /// unchanged with each call, in `OpenRouter`'s words.
    pub fn thinks_as_openrouter(&self) {
        self.lock().thinking = Thinking::InDetails;
    }

    /// Makes the server of chat completions one that keeps thoughts to itself, and takes tools only
    /// where it is asked for none, as OpenAI does with some models.
    pub fn thinks_only_without_tools(&self) {
        self.lock().thinking = Thinking::WithoutTools;
    }
}

/// Adds what the model thought to a whole reply: `thought`, or a sentence that differs each time.
pub(super) fn add(thinking: Thinking, request: &Request, thought: Option<&str>, body: &mut Value) {
    if matches!(thinking, Thinking::Off | Thinking::WithoutTools) {
        return;
    }
    let turn = request.messages.len();
    let thought = thought.map_or_else(|| format!("Thought {turn}."), str::to_owned);
    match request.protocol {
        Protocol::ChatCompletions => {
            let message = &mut body["choices"][0]["message"];
            if message["content"] == "" {
                message["content"] = Value::Null;
            }
            match thinking {
                Thinking::Off | Thinking::WithoutTools => {}
                Thinking::Demanded => {
                    message["reasoning_content"] = json!(thought);
                    if let Some(first) = message.get_mut("tool_calls").and_then(|calls| calls.get_mut(0)) {
                        let signature = format!("signature of {}", first["id"]);
                        first["extra_content"] = json!({ "google": { "thought_signature": signature } });
                    }
                }
                Thinking::DemandedWithAll => message["reasoning_content"] = json!(thought),
                Thinking::Offered => message["reasoning"] = json!(thought),
                Thinking::InDetails => {
                    message["reasoning_details"] = details(&turn.to_string(), &thought);
                    message["reasoning"] = json!(thought);
                }
            }
        }
        Protocol::Messages => {
            if let Some(content) = body["content"].as_array_mut() {
                let signature = format!("signature {turn}");
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
        Protocol::Ollama => body["message"]["thinking"] = json!(thought),
    }
}

/// Returns a thought as `OpenRouter` has it: the text, signed, and what only the model can read.
fn details(turn: &str, thought: &str) -> Value {
    json!([
        { "type": "reasoning.text", "text": thought, "signature": format!("signature {turn}"), "format": "anthropic-claude-v1", "index": 0 },
        { "type": "reasoning.encrypted", "data": format!("hidden {turn}"), "id": format!("rs_{turn}"), "format": "openai-responses-v1", "index": 0 },
    ])
}

/// Returns the words in which the server refuses a conversation whose replies lack a thought, or
/// tools beside thoughts.
pub(super) fn refusal(thinking: Thinking, request: &Request) -> Option<String> {
    if thinking == Thinking::WithoutTools {
        return with_tools(request);
    }
    let messages = request.body["messages"].as_array()?;
    let mut replies = messages
        .iter()
        .enumerate()
        .filter(|(_, message)| message["role"] == "assistant");
    replies.find_map(|(place, message)| match (request.protocol, thinking) {
        (_, Thinking::Off | Thinking::Offered | Thinking::WithoutTools) | (Protocol::Ollama, _) => None,
        (Protocol::ChatCompletions, Thinking::Demanded) => without_thought(place, message),
        (Protocol::ChatCompletions, Thinking::DemandedWithAll) => {
            let is_refused = !request.offered.is_empty() && !message["reasoning_content"].is_string();
            is_refused
                .then(|| "The `reasoning_content` in the thinking mode must be passed back to the API.".to_owned())
        }
        (Protocol::ChatCompletions, Thinking::InDetails) => without_details(message),
        (Protocol::Messages, _) => without_blocks(place, message),
    })
}

fn with_tools(request: &Request) -> Option<String> {
    let is_refused = !request.offered.is_empty() && request.body["reasoning_effort"] != "none";
    is_refused.then(|| {
        format!(
            "Function tools with reasoning_effort are not supported for {} in /v1/chat/completions. To use function tools, use \
             /v1/responses or set reasoning_effort to 'none'.",
            request.model
        )
    })
}

fn without_thought(place: usize, message: &Value) -> Option<String> {
    let first = message["tool_calls"].get(0)?;
    let thought = message["reasoning_content"].as_str().unwrap_or_default();
    if !thought.starts_with("Thought ") {
        return Some(format!(
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index {place}"
        ));
    }
    let expected = format!("signature of {}", first["id"]);
    let is_signed = first["extra_content"]["google"]["thought_signature"] == expected.as_str();
    (!is_signed).then(|| "Function call is missing a thought_signature in functionCall parts.".to_owned())
}

fn without_details(message: &Value) -> Option<String> {
    message["tool_calls"].get(0)?;
    let sent = &message["reasoning_details"];
    let text = sent[0]["text"].as_str().unwrap_or_default();
    let hidden = sent[1]["data"].as_str().unwrap_or_default();
    let is_whole = hidden
        .strip_prefix("hidden ")
        .is_some_and(|turn| *sent == details(turn, text));
    (!is_whole).then(|| {
        "Gemini models require OpenRouter reasoning details to be preserved in each request. Please refer to our docs: \
         https://openrouter.ai/docs/use-cases/reasoning-tokens#preserving-reasoning-blocks. Upstream error: Function call is \
         missing a thought_signature in functionCall parts."
            .to_owned()
    })
}

fn without_blocks(place: usize, message: &Value) -> Option<String> {
    let blocks = message["content"].as_array()?;
    if !blocks.iter().any(|block| block["type"] == "tool_use") {
        return None;
    }
    let number = |text: &Value, before: &str| text.as_str()?.strip_prefix(before).map(str::to_owned);
    let thought = number(&blocks[0]["thinking"], "Thought ");
    let signed = number(&blocks[0]["signature"], "signature ").map(|number| format!("{number}."));
    let is_hidden = blocks
        .get(1)
        .is_some_and(|block| block["type"] == "redacted_thinking" && block["data"].is_string());
    (thought.is_none() || thought != signed || !is_hidden).then(|| {
        format!(
            "messages.{place}.content.0.type: Expected `thinking` or `redacted_thinking`, but found `{}`. When `thinking` is \
             enabled, a final `assistant` message must start with a thinking block",
            blocks[0]["type"].as_str().unwrap_or_default()
        )
    })
}

/// Returns what is wrong with the thoughts that Ollama gets back. It refuses nothing: its templates
/// write the thoughts behind the last words of the user, and leave others out.
pub(super) fn violation(thinking: Thinking, request: &Request) -> Option<String> {
    if thinking == Thinking::Off || request.protocol != Protocol::Ollama {
        return None;
    }
    let messages = request.body["messages"].as_array()?;
    let question = messages.iter().rposition(|message| message["role"] == "user")?;
    messages.iter().enumerate().find_map(|(place, message)| {
        let has_calls = message["tool_calls"].get(0).is_some();
        match message["thinking"].as_str() {
            None if place > question && has_calls => Some(format!("message {place} lacks what was thought before it")),
            Some(_) if place < question => Some(format!("message {place} has thoughts that no template writes")),
            _ => None,
        }
    })
}
