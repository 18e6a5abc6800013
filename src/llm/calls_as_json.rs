//! Writes calls and results as JSON text, for models that take no native calls.

use std::borrow::Cow;

use serde_json::{Value, json};

use crate::conversation::decode::DONE;
use crate::conversation::{Message, ReplyOrigin, ToolCall, ToolResult, tool_name};
use crate::llm::connection::Connection;
use crate::llm::provider::masked_messages;

/// How results are written for a model that takes no native calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrittenResults {
    /// As [`previous_output`].
    Json,
    /// As they are, each below a line with its call: for a model that reads text better than
    /// strings in JSON.
    Text,
}

impl WrittenResults {
    pub(crate) fn text(self, results: &[ToolResult]) -> String {
        match self {
            Self::Json => previous_output(results),
            Self::Text => plain_output(results),
        }
    }
}

/// Returns `{"output", "is_error"?}`, or, of several, `{"previous_output": [{"tool", "output",
/// "is_error"?}]}`. The results stand in the order of the calls, whose arguments are not repeated:
/// the model has just written them, and each request would pay for them again.
pub(crate) fn previous_output(results: &[ToolResult]) -> String {
    let mut list: Vec<Value> = results
        .iter()
        .map(|result| {
            let mut entry = json!({ "output": result.output });
            if results.len() > 1 {
                entry["tool"] = json!(tool_name::short(&result.call.tool));
            }
            if result.is_error {
                entry["is_error"] = json!(true);
            }
            entry
        })
        .collect();
    match list.pop() {
        Some(only) if list.is_empty() => only.to_string(),
        rest => {
            list.extend(rest);
            json!({ "previous_output": list }).to_string()
        }
    }
}

fn plain_output(results: &[ToolResult]) -> String {
    let texts: Vec<String> = results
        .iter()
        .map(|result| {
            let call = &result.call;
            let what = ["path", "command"]
                .iter()
                .find_map(|name| call.args.get(*name)?.as_str());
            let what = what.and_then(|what| what.lines().next()).unwrap_or_default();
            let heading = format!("{} {what}", tool_name::short(&call.tool));
            format!("{}:\n{}", heading.trim_end(), result.output)
        })
        .collect();
    texts.join("\n\n")
}

/// Returns `history` as `connection` gets it: without native calls that it does not take, or did
/// not make.
pub(super) fn rendered_for<'chat>(
    connection: &Connection,
    is_native: bool,
    history: &'chat [Message],
) -> Cow<'chat, [Message]> {
    let messages = if is_native {
        let model = connection.provider.info().describe();
        render_foreign_calls(history, &model, connection.masks_personal_data)
    } else {
        render_calls_as_json(history)
    };
    connection.fitted(messages)
}

/// Returns `history` with native calls and their results as JSON text, one message for each. Needed
/// if a conversation that began with native calls goes on without them.
fn render_calls_as_json(history: &[Message]) -> Cow<'_, [Message]> {
    rendered(history, |_| true)
}

/// Returns `history` with the native calls that another model than `model` made as JSON text, and
/// without what only the other one may get. One provider refuses the ids that another gives, and a
/// model that thinks refuses calls without its own thoughts or signature, or with changed ones: if
/// personal data is masked, calls with such data in what goes with them are foreign, too.
fn render_foreign_calls<'chat>(history: &'chat [Message], model: &str, is_masked: bool) -> Cow<'chat, [Message]> {
    let is_foreign =
        |origin: &ReplyOrigin| origin.model != model || (is_masked && masked_messages::changes_carried(origin));
    rendered(history, |origin| origin.is_some_and(is_foreign))
}

/// Writes the replies for whose origin `is_meant` is true as JSON text, and the results of their
/// calls.
fn rendered(history: &[Message], is_meant: impl Fn(Option<&ReplyOrigin>) -> bool) -> Cow<'_, [Message]> {
    let is_written = |message: &Message| match message {
        Message::Assistant { calls, origin, .. } => {
            (!calls.is_empty() || origin.is_some()) && is_meant(origin.as_ref())
        }
        Message::Results { .. } => is_meant(None),
        Message::System { .. } | Message::User { .. } | Message::Summary { .. } => false,
    };
    if !history.iter().any(is_written) {
        return Cow::Borrowed(history);
    }
    let mut are_results_written = is_meant(None);
    let written = history.iter().map(|message| match message {
        Message::Assistant { text, calls, origin } => {
            are_results_written = is_meant(origin.as_ref());
            if !are_results_written {
                return message.clone();
            }
            Message::Assistant {
                text: if calls.is_empty() {
                    text.clone()
                } else {
                    turn(text, calls)
                },
                calls: Vec::new(),
                origin: None,
            }
        }
        Message::Results { results } if are_results_written => Message::User {
            text: previous_output(results),
            pictures: Vec::new(),
        },
        other => other.clone(),
    });
    Cow::Owned(written.collect())
}

fn turn(text: &str, calls: &[ToolCall]) -> String {
    let (done, calls): (Vec<_>, Vec<_>) = calls.iter().partition(|call| call.tool == DONE);
    let name = |call: &ToolCall| tool_name::short(&call.tool).to_owned();
    let mut turn = json!({ "comment": text });
    match calls.as_slice() {
        [] => {}
        [only] => {
            turn["tool"] = json!(name(only));
            turn["args"] = json!(only.args);
        }
        several => {
            let command = |call: &&ToolCall| json!({ "tool": name(call), "args": call.args });
            turn["commands"] = several.iter().map(command).collect();
        }
    }
    if !done.is_empty() {
        turn["done"] = json!(true);
    }
    turn.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(tool: &str, args: &Value) -> ToolCall {
        ToolCall {
            id: "1".to_owned(),
            tool: tool.to_owned(),
            args: args.as_object().cloned().unwrap(),
        }
    }

    #[test]
    fn results_do_not_repeat_what_the_model_said() {
        let result = |call, is_error| ToolResult {
            call,
            output: "out".to_owned(),
            is_error,
        };
        let one = result(call("a/b", &json!({"path": "x"})), false);
        let other = result(call("a/c", &json!({"content": "y"})), true);
        assert_eq!(previous_output(std::slice::from_ref(&one)), r#"{"output":"out"}"#);
        assert_eq!(
            previous_output(&[one, other]),
            r#"{"previous_output":[{"output":"out","tool":"a/b"},{"is_error":true,"output":"out","tool":"a/c"}]}"#
        );
    }

    #[test]
    fn native_calls_can_be_written_out() {
        let done = call(DONE, &json!({}));
        let history = [Message::Assistant {
            text: "go".to_owned(),
            calls: vec![call("a/b", &json!({"x": 1})), done],
            origin: None,
        }];
        let expected = json!({"comment": "go", "tool": "a/b", "args": {"x": 1}, "done": true});
        assert_eq!(
            render_calls_as_json(&history).as_ref(),
            [Message::Assistant {
                text: expected.to_string(),
                calls: vec![],
                origin: None,
            }]
        );
    }

    #[test]
    fn only_calls_of_other_models_are_written_out_for_a_model() {
        let said = |model: &str| {
            let call = call("a/b", &json!({"x": 1}));
            let reply = Message::Assistant {
                text: "go".to_owned(),
                calls: vec![call.clone()],
                origin: Some(ReplyOrigin {
                    model: model.to_owned(),
                    carried: json!("thoughts"),
                    ..ReplyOrigin::default()
                }),
            };
            let result = ToolResult {
                call,
                output: "out".to_owned(),
                is_error: false,
            };
            [reply, Message::Results { results: vec![result] }]
        };
        let history = [said("one"), said("other")].concat();
        assert_eq!(render_foreign_calls(&history[..2], "one", false).as_ref(), said("one"));
        let written = [
            Message::Assistant {
                text: json!({"comment": "go", "tool": "a/b", "args": {"x": 1}}).to_string(),
                calls: Vec::new(),
                origin: None,
            },
            Message::User {
                text: r#"{"output":"out"}"#.to_owned(),
                pictures: Vec::new(),
            },
        ];
        let expected = [written.as_slice(), &said("other")].concat();
        assert_eq!(render_foreign_calls(&history, "other", true).as_ref(), expected);
        // Personal data is not sent in thoughts either.
        let mut private = said("other");
        if let Message::Assistant {
            origin: Some(origin), ..
        } = &mut private[0]
        {
            origin.carried = json!({ "thoughts": "Ask jane@acme.dev." });
        }
        assert_eq!(render_foreign_calls(&private, "other", false).as_ref(), private);
        assert_eq!(render_foreign_calls(&private, "other", true).as_ref(), written);
        // Nobody knows who made what an earlier version stored, and it stays as it is.
        let mut old = said("one");
        if let Message::Assistant { origin, .. } = &mut old[0] {
            *origin = None;
        }
        assert_eq!(render_foreign_calls(&old, "other", false).as_ref(), old);
    }
}
