//! The protocol of one provider: where requests go, what they contain and how answers are read.
//!
//! A provider makes and reads JSON; only `takes_native_calls` and `examine` ask the server, and all
//! requests go through `http`. So every rule about retries, refusals and limits exists once.

use std::borrow::Cow;

use async_trait::async_trait;
use serde_json::{Map, Value, json};

use super::facts::Facts;
use super::http::Http;
use super::{LlmError, names};
use crate::conversation::decode::{self, DONE};
use crate::conversation::{Message, ToolSpec};

/// A protocol of talking to a model.
#[async_trait]
pub(super) trait Provider: Send + Sync {
    fn facts(&self) -> &Facts;
    /// Returns the address to which conversations are sent.
    fn chat_url(&self) -> String;
    /// Returns the request for `prompt`.
    fn body(&self, prompt: &Prompt<'_>) -> Value;
    /// Reads the server's answer; the error says what is missing.
    fn read(&self, answer: &Value) -> Result<Answer, String>;
    /// Asks whether the model takes native tool calls. If the server does not tell, they are tried.
    async fn takes_native_calls(&self, http: &Http) -> bool;
    /// Asks the server what it is and whether it has the model.
    async fn examine(&self, http: &Http) -> Result<String, LlmError>;
}

/// A conversation to be sent.
pub(super) struct Prompt<'chat> {
    pub(super) messages: &'chat [Message],
    /// Tools to offer as native functions; `None` in JSON mode.
    pub(super) tools: Option<&'chat [ToolSpec]>,
    /// JSON Schema that the server is to hold the reply to.
    pub(super) form: Option<&'chat Value>,
}

/// A tool as it is described to a provider.
pub(super) struct Function<'chat> {
    /// The name in the form that providers accept.
    pub(super) name: String,
    pub(super) description: &'chat str,
    pub(super) schema: Cow<'chat, Value>,
}

impl Prompt<'_> {
    /// Returns the functions to offer: the tools, and the pseudo tool by which the model says that
    /// it is done.
    pub(super) fn functions(&self) -> Vec<Function<'_>> {
        let Some(tools) = self.tools else {
            return Vec::new();
        };
        let done = Function {
            name: DONE.to_owned(),
            description: "Say that all of the work is finished.",
            schema: Cow::Owned(json!({
                "type": "object",
                "properties": { "comment": { "type": "string", "description": "What was done" } },
                "required": ["comment"],
            })),
        };
        let offered = tools.iter().map(|tool| Function {
            name: names::wire(&tool.name),
            description: &tool.description,
            schema: Cow::Borrowed(&tool.schema),
        });
        offered.chain([done]).collect()
    }
}

/// A model's answer.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) calls: Vec<WireCall>,
    /// Whether the reply ended at the length limit.
    pub(super) cut: bool,
    /// The server's count; not every server counts.
    pub(super) counted: Option<Counted>,
}

/// A native call as it came.
#[derive(Debug)]
pub(super) struct WireCall {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) args: Result<Map<String, Value>, String>,
}

/// Tokens, as the server counted them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cached: u64,
}

/// More than any model reads or writes at once: a server's count above it is cut to this, and sums
/// of counts never overflow.
const MOST_TOKENS: u64 = 1 << 40;

/// Returns the number of tokens in `value`, if there is one.
pub(super) fn tokens(value: &Value) -> Option<u64> {
    value.as_u64().map(|tokens| tokens.min(MOST_TOKENS))
}

/// Sent where a provider requires some text and there is none.
pub(super) const NO_TEXT: &str = "(no text)";

/// Returns the arguments as an object, whether the server wrote them as text or as JSON.
pub(super) fn arguments(value: Option<&Value>) -> Result<Map<String, Value>, String> {
    match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(object)) => Ok(object.clone()),
        Some(Value::String(text)) => decode::arguments(text),
        Some(_) => Err("the arguments are not a JSON object".to_owned()),
    }
}
