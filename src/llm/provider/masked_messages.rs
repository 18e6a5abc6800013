//! Messages as a model gets them that is not near: personal data is replaced by marks.
//!
//! The conversation itself stays as it is, since its next reply may come from a model that is near.
//! The same text always gets the same marks, so that the provider's cache stays warm.

use serde_json::{Map, Value};

use crate::conversation::{Message, ReplyOrigin, ToolCall, ToolResult};
use crate::secret::personal::masked;

/// Returns the messages with a mark in the place of each piece of personal data.
pub(crate) fn mask(messages: &[Message]) -> Vec<Message> {
    messages.iter().map(message).collect()
}

/// Returns true if masking would change what only the model that made the reply gets back.
pub(crate) fn changes_carried(origin: &ReplyOrigin) -> bool {
    origin.is_changed_by(value)
}

fn message(message: &Message) -> Message {
    match message {
        Message::System { text } => Message::System { text: masked(text) },
        // Nobody can mask what a picture shows; none comes this far.
        Message::User { text, .. } => Message::User {
            text: masked(text),
            pictures: Vec::new(),
        },
        Message::Assistant { text, calls, origin } => Message::Assistant {
            text: masked(text),
            calls: calls.iter().map(call).collect(),
            // No reply is left in which masking would change it, see [`changes_carried`].
            origin: origin.clone(),
        },
        Message::Summary { replaces, text } => Message::Summary {
            replaces: *replaces,
            text: masked(text),
        },
        Message::Results { results } => Message::Results {
            results: results.iter().map(result).collect(),
        },
    }
}

fn call(call: &ToolCall) -> ToolCall {
    ToolCall {
        args: object(&call.args),
        ..call.clone()
    }
}

fn result(result: &ToolResult) -> ToolResult {
    ToolResult {
        call: call(&result.call),
        output: masked(&result.output),
        is_error: result.is_error,
    }
}

fn object(fields: &Map<String, Value>) -> Map<String, Value> {
    let fields = fields.iter().map(|(key, field)| (key.clone(), value(field)));
    fields.collect()
}

fn value(whole: &Value) -> Value {
    match whole {
        Value::String(text) => Value::String(masked(text)),
        Value::Array(values) => values.iter().map(value).collect(),
        Value::Object(fields) => Value::Object(object(fields)),
        Value::Null | Value::Bool(_) | Value::Number(_) => whole.clone(),
    }
}
