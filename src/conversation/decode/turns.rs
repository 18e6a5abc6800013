//! Turns in the objects of a reply, in the program's own forms and in that of Hermes.

use serde_json::{Map, Value};

use crate::conversation::{ToolCall, Turn};

/// Keys beside a call's tool that are no arguments.
const BESIDE_ARGUMENTS: [&str; 4] = ["tool", "args", "comment", "done"];

pub(super) fn turn_of(object: &Map<String, Value>) -> Result<Turn, String> {
    let mut comments = vec![text_of(object, "comment")?];
    let mut calls = Vec::new();
    if object.get("tool").is_some_and(|tool| !tool.is_null()) {
        calls.push(flat_call_of(object)?);
    }
    let others: &[&str] = if calls.is_empty() {
        &["command", "commands"]
    } else {
        &[]
    };
    for key in others.iter().copied() {
        let commands = match object.get(key) {
            None | Some(Value::Null) => &[],
            Some(Value::Array(list)) => list.as_slice(),
            Some(one) => std::slice::from_ref(one),
        };
        for command in commands {
            let Value::Object(command) = command else {
                return Err(format!(
                    "`{key}` must hold {{\"tool\": ..., \"args\": ...}}, not {}",
                    kind(command)
                ));
            };
            comments.push(text_of(command, "comment")?);
            calls.push(call_of(command)?);
        }
    }
    let done = match object.get("done") {
        None | Some(Value::Null) => false,
        Some(Value::Bool(done)) => *done,
        Some(other) => return Err(format!("`done` must be true or false, not {}", kind(other))),
    };
    if calls.is_empty() && !done {
        return Err("there is no `tool`, and `done` is not true".to_owned());
    }
    Ok(Turn {
        comment: joined(comments),
        calls,
        done,
    })
}

/// Reads a turn in the form of Hermes. A final answer beside calls is, like `done`, one that counts
/// if they succeed.
pub(super) fn hermes_turn_of(object: &Map<String, Value>) -> Result<Turn, String> {
    let listed = match object.get("tool_calls") {
        None | Some(Value::Null) => &[],
        Some(Value::Array(list)) => list.as_slice(),
        Some(other) => return Err(format!("`tool_calls` must be a list, not {}", kind(other))),
    };
    let mut calls = Vec::with_capacity(listed.len());
    for call in listed {
        let Value::Object(call) = call else {
            return Err(format!(
                "`tool_calls` must hold {{\"name\": ..., \"parameters\": ...}}, not {}",
                kind(call)
            ));
        };
        let parameters = if call.contains_key("arguments") {
            "arguments"
        } else {
            "parameters"
        };
        calls.push(named_call(call, "name", parameters)?);
    }
    let answer = text_of(object, "final_answer")?;
    let done = !answer.is_empty();
    if calls.is_empty() && !done {
        return Err("`tool_calls` and `final_answer` are both empty".to_owned());
    }
    Ok(Turn {
        comment: joined(vec![text_of(object, "thought")?, answer]),
        calls,
        done,
    })
}

fn call_of(command: &Map<String, Value>) -> Result<ToolCall, String> {
    named_call(command, "tool", "args")
}

/// Reads a call that stands in the reply itself. Where it has no `args`, what stands beside the
/// tool are the arguments: nothing else can be meant.
fn flat_call_of(object: &Map<String, Value>) -> Result<ToolCall, String> {
    if object.get("args").is_some_and(|args| !args.is_null()) {
        if let Some(other) = ["command", "commands"].iter().find(|key| object.contains_key(**key)) {
            return Err(format!("`args` and `{other}` both stand beside `tool`"));
        }
        return call_of(object);
    }
    let beside = object
        .iter()
        .filter(|(key, _)| !BESIDE_ARGUMENTS.contains(&key.as_str()));
    let args = beside.map(|(key, value)| (key.clone(), value.clone())).collect();
    let call = call_of(object)?;
    Ok(ToolCall { args, ..call })
}

/// Reads a call whose tool and arguments stand under these keys.
fn named_call(command: &Map<String, Value>, name: &str, arguments: &str) -> Result<ToolCall, String> {
    let tool = text_of(command, name)?;
    if tool.is_empty() {
        return Err(format!("a command has no `{name}`"));
    }
    let args = match command.get(arguments) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(args)) => args.clone(),
        Some(other) => {
            return Err(format!(
                "`{arguments}` of {tool} must be an object, not {}",
                kind(other)
            ));
        }
    };
    Ok(ToolCall {
        id: String::new(),
        tool,
        args,
    })
}

pub(super) fn text_of(object: &Map<String, Value>, key: &str) -> Result<String, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.trim().to_owned()),
        Some(other) => Err(format!("`{key}` must be a string, not {}", kind(other))),
    }
}

pub(super) fn joined(mut comments: Vec<String>) -> String {
    comments.retain(|comment| !comment.is_empty());
    comments.dedup();
    comments.join("\n")
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}
