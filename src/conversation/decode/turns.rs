//! Turns in the objects of a reply, in the program's own forms and in that of Hermes.

use serde_json::{Map, Value};

use super::lenient;
use crate::conversation::{ToolCall, Turn};

/// What stands around a call in a text.
const CALL_TAGS: (&str, &str) = ("<tool_call>", "</tool_call>");

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
        calls.push(hermes_call_of(call)?);
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

/// Reads the calls that a reply ends with, each between `<tool_call>` and `</tool_call>`, as Qwen
/// and Hermes write them and a server without a parser leaves them in the text; returns them with
/// what was said before. `None` if the reply does not end with such calls.
pub(super) fn tagged_calls_of(said: &str) -> Option<Result<(String, Vec<ToolCall>), String>> {
    let (opening, closing) = CALL_TAGS;
    let (comment, mut rest) = said.split_once(opening)?;
    let mut calls = Vec::new();
    loop {
        let written = rest.trim_start();
        if !written.starts_with('{') {
            return None;
        }
        let object = lenient::object(written, 0).ok()?;
        calls.push(hermes_call_of(&object.content));
        let behind = written[object.end..].trim();
        if behind.is_empty() || behind == closing {
            break;
        }
        rest = behind.strip_prefix(closing)?.trim_start().strip_prefix(opening)?;
    }
    let calls: Result<Vec<ToolCall>, String> = calls.into_iter().collect();
    Some(calls.map(|calls| (comment.trim().to_owned(), calls)))
}

fn hermes_call_of(call: &Map<String, Value>) -> Result<ToolCall, String> {
    let parameters = if call.contains_key("arguments") {
        "arguments"
    } else {
        "parameters"
    };
    named_call(call, "name", parameters)
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::conversation::{Reply, decode};

    fn read(text: &str) -> Result<Turn, String> {
        let reply = Reply {
            text: text.to_owned(),
            ..Reply::default()
        };
        decode::turn(&reply).map_err(|unreadable| unreadable.what)
    }

    fn bash(command: &str) -> ToolCall {
        ToolCall {
            id: String::new(),
            tool: "bash".to_owned(),
            args: json!({ "command": command }).as_object().cloned().unwrap(),
        }
    }

    #[test]
    fn native_calls_that_the_server_left_in_the_text_are_read() {
        for (text, comment, calls, done) in [
            (
                "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n</tool_call>",
                "",
                vec![bash("ls")],
                false,
            ),
            (
                "<think>{\"a\": 1}</think>I look.\n\n\
                 <tool_call>{\"name\": \"bash\", \"parameters\": {\"command\": \"ls\"}}",
                "I look.",
                vec![bash("ls")],
                false,
            ),
            (
                "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}</tool_call>\n\
                 <tool_call>{\"name\": \"done\", \"arguments\": {\"comment\": \"Made.\"}}</tool_call>\n",
                "Made.",
                vec![bash("ls")],
                true,
            ),
            (
                "<tool_call>{\"name\": \"bash\", \"arguments\": {\"command\": \"echo '</tool_call>'\"}}</tool_call>",
                "",
                vec![bash("echo '</tool_call>'")],
                false,
            ),
        ] {
            let expected = Turn {
                comment: comment.to_owned(),
                calls,
                done,
            };
            assert_eq!(read(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn tagged_calls_that_do_not_stand_alone_are_not_run() {
        let tagged = r#"<tool_call>{"name": "bash", "arguments": {"command": "ls"}}</tool_call>"#;
        for (text, what) in [
            // What follows was built on an invented result.
            (
                format!("{tagged}\n<tool_response>README.md</tool_response>"),
                "The JSON at line 1, column 12 has neither `tool` nor `done`",
            ),
            (
                format!("{{\"answer\": 1}} {tagged}"),
                "The JSON at line 1, column 1 has neither `tool` nor `done`",
            ),
            (
                r#"<tool_call>{"name": "bash", "arguments": "ls"}</tool_call>"#.to_owned(),
                "In a <tool_call>: `arguments` of bash must be an object, not a string",
            ),
            (
                r#"<tool_call>{"name": "name", "arguments": {}}</tool_call>"#.to_owned(),
                "The reply repeats the example of the prompt",
            ),
        ] {
            assert_eq!(read(&text), Err(what.to_owned()), "{text}");
        }
    }
}
