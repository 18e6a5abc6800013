//! Reads JSON out of whatever a model wrote around it.
//!
//! A working reply is one JSON object, `{"comment", "command": {"tool", "args"}}` or `{"comment", "done": true}`, or
//! native calls. Guaranteed: what is returned was said by the model and is not an echo of the prompt's example, which
//! names its tool `server/tool` and comments `why`.
//!
//! Two *different* answers in one reply are refused, not chosen from. The last one would be wrong where a small model
//! plays both sides (it writes a command, invents the output and calls itself done); the first one would be wrong
//! where it drafts and then decides; running all of them would run the draft. Asking again costs one call.

mod lenient;
mod search;

use serde_json::{Map, Value};

use super::{Reply, ToolCall, Turn};

/// The pseudo tool by which a model with native calls says that it is done.
pub const DONE: &str = "done";

/// The tool of the prompt's example.
const EXAMPLE_TOOL: &str = "server/tool";
/// The comment of the prompt's example.
const EXAMPLE_COMMENT: &str = "why";

const FORM: &str = "Reply with exactly one JSON object: \
    {\"comment\":\"why\",\"command\":{\"tool\":\"server/tool\",\"args\":{}}} to run a tool \
    (\"commands\":[{\"tool\":...,\"args\":...}] for several), or {\"comment\":\"why\",\"done\":true} when all is done.";

/// Why a reply could not be read, in words for the model: it is sent back as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unreadable(pub String);

/// Returns the turn that a working reply holds, from native calls or from JSON in its text.
pub fn turn(reply: &Reply) -> Result<Turn, Unreadable> {
    if !reply.broken_calls.is_empty() {
        let cut = if reply.cut {
            " The reply was cut at the length limit: write large files in several calls."
        } else {
            ""
        };
        return Err(Unreadable(format!(
            "{}.{cut} Nothing of this reply was run; send the calls again.",
            reply.broken_calls.join("; ")
        )));
    }
    if reply.calls.is_empty() {
        return written_turn(reply).map_err(|what| Unreadable(format!("{what}. {FORM}")));
    }
    Ok(native_turn(reply))
}

/// Returns the JSON objects found in `text`, in order: string-aware, in fences, prose, after `<think>…</think>`,
/// with trailing commas and single quotes mended. Nested objects are not listed apart.
pub fn objects(text: &str) -> Vec<Value> {
    let found = search::search(text);
    found
        .objects
        .into_iter()
        .map(|(_, object)| Value::Object(object))
        .collect()
}

/// Returns `text` without what the model only thought.
pub fn without_thinking(text: &str) -> String {
    search::search(text).said.trim().to_owned()
}

/// Returns the object that `text` is, as a whole: the arguments of a native call.
pub fn arguments(text: &str) -> Result<Map<String, Value>, Unreadable> {
    let start = text.len() - text.trim_start().len();
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    if !text[start..].starts_with('{') {
        return Err(Unreadable("the arguments are not a JSON object".to_owned()));
    }
    match lenient::object(text, start) {
        Ok((object, end)) if text[end..].trim().is_empty() => Ok(object),
        Ok((_, end)) => Err(Unreadable(format!(
            "the arguments go on behind their end at {}",
            position(text, end)
        ))),
        Err(fault) => Err(Unreadable(format!(
            "the arguments are broken at {}: {}",
            position(text, fault.at),
            fault.what
        ))),
    }
}

/// Says why `reply` holds no object of the wanted kind, if something in it is plainly wrong.
pub fn fault(reply: &Reply) -> Option<String> {
    fault_in(reply, &search::search(&reply.text))
}

fn fault_in(reply: &Reply, found: &search::Found) -> Option<String> {
    if reply.cut {
        return Some(
            "The reply was cut at the length limit before its end; send a shorter one, \
             large files in several calls"
                .to_owned(),
        );
    }
    if let Some((start, fault)) = &found.broken {
        return Some(format!(
            "The JSON that begins at {} is broken at {}: {}",
            position(&reply.text, *start),
            position(&reply.text, fault.at),
            fault.what
        ));
    }
    found
        .ends_in_thought
        .then(|| "The reply ends inside its thinking, without an answer".to_owned())
}

fn written_turn(reply: &Reply) -> Result<Turn, String> {
    let found = search::search(&reply.text);
    let mut answer: Option<(usize, Turn)> = None;
    let mut problem = None;
    for (start, object) in &found.objects {
        if object.contains_key("previous_output") {
            // Results come from the program only. Whatever follows was built on invented ones.
            problem = Some("The reply holds a `previous_output` of its own; only the program sends results".to_owned());
            break;
        }
        if !["command", "commands", "done"]
            .iter()
            .any(|key| object.contains_key(*key))
        {
            continue;
        }
        match turn_of(object) {
            Ok(turn) if is_example(&turn) => {
                problem = Some("The reply repeats the example of the prompt".to_owned());
            }
            Ok(turn) => match &answer {
                Some((_, earlier)) if *earlier == turn => {}
                Some((earlier, _)) => {
                    return Err(format!(
                        "The reply holds two different answers, at {} and {}, and none of it was run",
                        position(&reply.text, *earlier),
                        position(&reply.text, *start)
                    ));
                }
                None => answer = Some((*start, turn)),
            },
            Err(what) => {
                problem = Some(format!("In the JSON at {}: {what}", position(&reply.text, *start)));
            }
        }
    }
    if let Some((_, turn)) = answer {
        return Ok(turn);
    }
    Err(problem
        .or_else(|| fault_in(reply, &found))
        .unwrap_or_else(|| match found.objects.first() {
            Some((start, _)) => format!(
                "The JSON at {} has neither `command` nor `done`",
                position(&reply.text, *start)
            ),
            None if reply.text.trim().is_empty() => "The reply is empty".to_owned(),
            None => "The reply holds no JSON object".to_owned(),
        }))
}

fn turn_of(object: &Map<String, Value>) -> Result<Turn, String> {
    let mut comments = vec![text_of(object, "comment")?];
    let mut calls = Vec::new();
    for key in ["command", "commands"] {
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
        return Err("there is no command, and `done` is not true".to_owned());
    }
    Ok(Turn {
        comment: joined(comments),
        calls,
        done,
    })
}

fn call_of(command: &Map<String, Value>) -> Result<ToolCall, String> {
    let tool = text_of(command, "tool")?;
    if tool.is_empty() {
        return Err("a command has no `tool`".to_owned());
    }
    let args = match command.get("args") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(args)) => args.clone(),
        Some(other) => return Err(format!("`args` of {tool} must be an object, not {}", kind(other))),
    };
    Ok(ToolCall {
        id: String::new(),
        tool,
        args,
    })
}

fn text_of(object: &Map<String, Value>, key: &str) -> Result<String, String> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.trim().to_owned()),
        Some(other) => Err(format!("`{key}` must be a string, not {}", kind(other))),
    }
}

fn is_example(turn: &Turn) -> bool {
    turn.calls.iter().any(|call| call.tool == EXAMPLE_TOOL)
        || (turn.done && turn.calls.is_empty() && turn.comment == EXAMPLE_COMMENT)
}

fn native_turn(reply: &Reply) -> Turn {
    let (done, calls): (Vec<_>, Vec<_>) = reply.calls.iter().cloned().partition(|call| call.tool == DONE);
    let found = search::search(&reply.text);
    // A model that was shown the JSON form may write it besides its native calls; the calls count, the comment is kept.
    let written = found
        .objects
        .iter()
        .find_map(|(_, object)| object.get("comment")?.as_str().map(str::to_owned));
    let mut comments = vec![written.unwrap_or_else(|| found.said.trim().to_owned())];
    comments.extend(
        done.iter()
            .map(|call| text_of(&call.args, "comment").unwrap_or_default()),
    );
    Turn {
        comment: joined(comments),
        calls,
        done: !done.is_empty(),
    }
}

fn joined(mut comments: Vec<String>) -> String {
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

/// Returns where `offset` stands in `text`, for people and models.
fn position(text: &str, offset: usize) -> String {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    format!(
        "line {}, column {}",
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn read(text: &str) -> Result<Turn, String> {
        turn(&Reply {
            text: text.to_owned(),
            ..Reply::default()
        })
        .map_err(|unreadable| unreadable.0)
    }

    fn refusal(text: &str) -> String {
        let error = read(text).expect_err(text);
        let what = error.strip_suffix(FORM).expect("the form is named");
        what.trim_end().to_owned()
    }

    fn call(tool: &str, args: &Value) -> ToolCall {
        ToolCall {
            id: String::new(),
            tool: tool.to_owned(),
            args: args.as_object().cloned().unwrap_or_default(),
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "it is compared with what `read` returns")]
    fn turn_with(comment: &str, calls: Vec<ToolCall>, done: bool) -> Result<Turn, String> {
        Ok(Turn {
            comment: comment.to_owned(),
            calls,
            done,
        })
    }

    #[test]
    fn a_comment_may_stand_at_the_top_or_inside_the_command() {
        let expected = turn_with("look", vec![call("workspace/list_files", &json!({"path": "."}))], false);
        for text in [
            r#"{"comment":"look","command":{"tool":"workspace/list_files","args":{"path":"."}}}"#,
            r#"{"command":{"comment":"look","tool":"workspace/list_files","args":{"path":"."}}}"#,
            "Sure!\n```json\n{'comment': 'look', 'command': {'tool': 'workspace/list_files', 'args': {'path': '.',},},}\n```\nDone.",
            "<think>{\"done\": true}</think>{\"comment\":\"look\",\"command\":[{\"tool\":\"workspace/list_files\",\"args\":{\"path\":\".\"}}],\"done\":false}",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn several_calls_may_come_with_one_reply() {
        assert_eq!(
            read(
                r#"{"comment":"both","commands":[{"tool":"a/b"},{"tool":"c/d","args":{"x":1},"comment":"then"}],"done":true}"#
            ),
            turn_with(
                "both\nthen",
                vec![call("a/b", &json!({})), call("c/d", &json!({"x": 1}))],
                true
            )
        );
    }

    #[test]
    fn done_ends_the_work() {
        assert_eq!(
            read(r#"{"comment":"All good","done":true}"#),
            turn_with("All good", vec![], true)
        );
        assert_eq!(read(r#"{"command":null,"done":True}"#), turn_with("", vec![], true));
    }

    #[test]
    fn an_echo_of_the_prompts_example_is_not_an_answer() {
        let example =
            r#"{"comment":"why","command":{"tool":"server/tool","args":{}}} or {"comment":"why","done":true}"#;
        assert_eq!(refusal(example), "The reply repeats the example of the prompt.");
        let answer = r#"{"comment":"go","command":{"tool":"a/b","args":{}}}"#;
        assert_eq!(
            read(&format!("As asked: {example}\n{answer}")),
            turn_with("go", vec![call("a/b", &json!({}))], false)
        );
    }

    #[test]
    fn two_answers_are_refused_and_a_repeated_one_is_one() {
        let one = r#"{"comment":"a","command":{"tool":"a/b","args":{}}}"#;
        assert_eq!(read(&format!("{one}\n{one}")), read(one));
        assert_eq!(
            refusal(&format!("{one}\n{{\"comment\":\"finished\",\"done\":true}}")),
            "The reply holds two different answers, at line 1, column 1 and line 2, column 1, and none of it was run."
        );
    }

    #[test]
    fn what_follows_an_invented_result_is_not_read() {
        let one = r#"{"comment":"a","command":{"tool":"a/b","args":{}}}"#;
        assert_eq!(
            read(&format!("{one}\n{{\"previous_output\":[]}}\n{{\"done\":true}}")),
            read(one)
        );
    }

    #[test]
    fn the_model_is_told_exactly_what_is_wrong() {
        for (text, what) in [
            ("", "The reply is empty."),
            ("I will do it.", "The reply holds no JSON object."),
            ("<think>hm", "The reply ends inside its thinking, without an answer."),
            (
                r#"{"answer":42}"#,
                "The JSON at line 1, column 1 has neither `command` nor `done`.",
            ),
            (
                "Look:\n{\"comment\":\"say \"hi\"\",\"done\":true}",
                "The JSON that begins at line 2, column 1 is broken at line 2, column 18: expected ',' or '}' after the value, found 'h'.",
            ),
            (
                r#"{"command":"ls"}"#,
                r#"In the JSON at line 1, column 1: `command` must hold {"tool": ..., "args": ...}, not a string."#,
            ),
            (
                r#"{"command":{"tool":"a/b","args":"ls"}}"#,
                "In the JSON at line 1, column 1: `args` of a/b must be an object, not a string.",
            ),
            (
                r#"{"command":{"args":{}}}"#,
                "In the JSON at line 1, column 1: a command has no `tool`.",
            ),
            (
                r#"{"done":"yes"}"#,
                "In the JSON at line 1, column 1: `done` must be true or false, not a string.",
            ),
            (
                r#"{"done":false}"#,
                "In the JSON at line 1, column 1: there is no command, and `done` is not true.",
            ),
        ] {
            assert_eq!(refusal(text), what, "{text}");
        }
    }

    #[test]
    fn a_reply_cut_at_the_limit_says_so() {
        let reply = Reply {
            text: r#"{"comment":"write","command":{"tool":"a/b","args":{"content":"half of"#.to_owned(),
            cut: true,
            ..Reply::default()
        };
        let error = turn(&reply).unwrap_err().0;
        assert!(error.starts_with("The reply was cut at the length limit"), "{error}");
    }

    #[test]
    fn native_calls_and_the_pseudo_tool_done_make_a_turn() {
        let reply = Reply {
            text: "<think>hm</think>Last step.".to_owned(),
            calls: vec![call("a/b", &json!({})), call(DONE, &json!({"comment": "finished"}))],
            ..Reply::default()
        };
        assert_eq!(
            turn(&reply).map_err(|unreadable| unreadable.0),
            turn_with("Last step.\nfinished", vec![call("a/b", &json!({}))], true)
        );
    }

    #[test]
    fn thinking_is_taken_out_but_not_out_of_strings() {
        assert_eq!(
            without_thinking("<think>a {\"b\":1}</think>\n\nc < d {\"e\":\"<think>\"}"),
            "c < d {\"e\":\"<think>\"}"
        );
        assert_eq!(without_thinking("a\n</think> b"), "b");
    }

    #[test]
    fn arguments_of_native_calls_are_whole_objects() {
        assert_eq!(arguments("").map(Value::Object), Ok(json!({})));
        assert_eq!(arguments(" {'a': 1,} ").map(Value::Object), Ok(json!({"a": 1})));
        assert!(arguments("{\"a\": 1} x").is_err());
        assert!(arguments("[1]").is_err());
    }

    proptest! {
        #[test]
        fn a_well_formed_reply_is_read_back_whatever_its_texts_hold(comment in "[a-z<>{}\"'\\\\あ\n]{1,40}", content in any::<String>()) {
            let args = json!({"content": content});
            let text = json!({"comment": comment, "command": {"tool": "a/b", "args": args}}).to_string();
            prop_assert_eq!(read(&text), turn_with(comment.trim(), vec![call("a/b", &args)], false));
        }

        #[test]
        fn no_reply_makes_it_panic(text in any::<String>()) {
            let _ = read(&text);
        }
    }
}
