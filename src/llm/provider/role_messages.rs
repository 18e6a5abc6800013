//! The list of messages by role that OpenAI's and Ollama's protocols share.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::conversation::{Message, ToolCall, ToolResult};
use crate::llm::provider::{NO_TEXT, Prompt};
use crate::picture::Picture;

/// Returns the conversation as messages by role; calls, results and pictures, in which the
/// protocols differ, are written by `call`, `result` and `show`. Consecutive user messages become
/// one: the templates of many local models refuse two.
pub(crate) fn messages(
    prompt: &Prompt<'_>,
    call: impl Fn(&ToolCall) -> Value,
    result: impl Fn(&ToolResult) -> Value,
    show: impl Fn(&mut Value, &[&Picture]),
) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    // Shown when all texts are joined.
    let mut shown: BTreeMap<usize, Vec<&Picture>> = BTreeMap::new();
    for message in prompt.messages {
        match message {
            Message::System { text } => messages.push(json!({ "role": "system", "content": text })),
            Message::User { text, pictures } => {
                say(&mut messages, text);
                if !pictures.is_empty() {
                    shown.entry(messages.len() - 1).or_default().extend(pictures);
                }
            }
            Message::Summary { text, .. } => say(&mut messages, text),
            Message::Assistant { text, calls, .. } if calls.is_empty() => {
                let text = if text.is_empty() { NO_TEXT } else { text };
                messages.push(json!({ "role": "assistant", "content": text }));
            }
            Message::Assistant { text, calls, .. } => {
                let calls: Vec<_> = calls.iter().map(&call).collect();
                messages.push(json!({ "role": "assistant", "content": text, "tool_calls": calls }));
            }
            Message::Results { results } => messages.extend(results.iter().map(&result)),
        }
    }
    for (place, pictures) in shown {
        show(&mut messages[place], &pictures);
    }
    messages
}

/// Adds words of the user, to the last message if that is the user's.
fn say(messages: &mut Vec<Value>, text: &str) {
    match messages.last_mut() {
        Some(last) if last["role"] == "user" => {
            let joined = format!("{}\n\n{text}", last["content"].as_str().unwrap_or_default());
            last["content"] = json!(joined);
        }
        _ => messages.push(json!({ "role": "user", "content": text })),
    }
}

/// Returns the messages with a reply between the results of calls and what the user says behind
/// them.
pub(crate) fn with_reply_behind_results(messages: Vec<Value>) -> Vec<Value> {
    let mut parted: Vec<Value> = Vec::with_capacity(messages.len());
    for message in messages {
        let is_behind_results = parted.last().is_some_and(|last| last["role"] == "tool");
        if is_behind_results && message["role"] == "user" {
            parted.push(json!({ "role": "assistant", "content": NO_TEXT }));
        }
        parted.push(message);
    }
    parted
}

/// Returns the tools as both protocols list them, or `None` if there are none.
pub(crate) fn functions(prompt: &Prompt<'_>) -> Option<Value> {
    let functions = prompt.functions();
    let listed = functions.iter().map(|tool| {
        json!({
            "type": "function",
            "function": { "name": tool.name, "description": tool.description, "parameters": tool.schema },
        })
    });
    (!functions.is_empty()).then(|| listed.collect())
}
