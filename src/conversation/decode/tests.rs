//! Replies that can be read, and what the model is told of those that cannot.

use super::*;
use crate::conversation::repetition::Repetition;
use proptest::prelude::*;
use serde_json::json;

fn read(text: &str) -> Result<Turn, String> {
    turn(&Reply {
        text: text.to_owned(),
        ..Reply::default()
    })
    .map_err(|unreadable| unreadable.to_string())
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
        r#"{"comment":"look","tool":"workspace/list_files","args":{"path":"."}}"#,
        r#"{"comment":"look","tool":"workspace/list_files","path":".","done":false}"#,
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
    let example = r#"{"comment":"why","tool":"name","args":{}} or {"comment":"why","done":true}"#;
    let older = r#"{"comment":"why","command":{"tool":"server/tool","args":{}}}"#;
    for example in [example, older] {
        assert_eq!(refusal(example), "The reply repeats the example of the prompt.");
    }
    // No prompt shows this one.
    assert_eq!(read(r#"{"comment":"...","done":true}"#), turn_with("...", vec![], true));
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
    for result in [r#"{"previous_output":[]}"#, r#"{"is_error":true,"output":"x"}"#] {
        assert_eq!(read(&format!("{one}\n{result}\n{{\"done\":true}}")), read(one));
    }
    // What has other fields too is quoted from somewhere.
    assert_eq!(read(&format!("Set {{\"output\":\"a\",\"mode\":1}}.\n{one}")), read(one));
}

#[test]
fn the_model_is_told_exactly_what_is_wrong() {
    for (text, what) in [
        ("", "The reply is empty."),
        ("I will do it.", "The reply holds no JSON object."),
        ("<think>hm", "The reply ends inside its thinking, without an answer."),
        (
            r#"{"answer":42}"#,
            "The JSON at line 1, column 1 has neither `tool` nor `done`.",
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
            "In the JSON at line 1, column 1: there is no `tool`, and `done` is not true.",
        ),
        (
            r#"{"tool":"a/b","args":{},"command":{"tool":"a/c"}}"#,
            "In the JSON at line 1, column 1: `args` and `command` both stand beside `tool`.",
        ),
        (
            r#"{"output":"fine"} {"done":true}"#,
            "The reply holds a result of its own; only the program sends results.",
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
    let error = turn(&reply).unwrap_err().to_string();
    assert!(error.starts_with("The reply was cut at the length limit"), "{error}");
}

#[test]
fn a_reply_that_was_ended_for_a_repetition_says_so_and_what_came_before_it_counts() {
    let ended = |text: &str, broken_calls: &[&str]| Reply {
        text: text.to_owned(),
        broken_calls: broken_calls.iter().map(|&call| call.to_owned()).collect(),
        cut: true,
        repetition: Some(Repetition {
            piece: "again\n".to_owned(),
            times: 9,
        }),
        ..Reply::default()
    };
    let error = |reply: &Reply| turn(reply).unwrap_err().to_string();
    let told = error(&ended("{\"comment\": \"again\n", &[]));
    assert!(
        told.starts_with("The reply repeated the same text over and over"),
        "{told}"
    );
    let told = error(&ended("", &["The arguments are broken"]));
    assert!(
        told.starts_with("The arguments are broken. The reply repeated itself over and over, and was ended there."),
        "{told}"
    );
    assert!(turn(&ended("{\"comment\": \"All is well.\", \"done\": true}\n", &[])).is_ok());
}

#[test]
fn native_calls_and_the_pseudo_tool_done_make_a_turn() {
    let reply = Reply {
        text: "<think>hm</think>Last step.".to_owned(),
        calls: vec![call("a/b", &json!({})), call(DONE, &json!({"comment": "finished"}))],
        ..Reply::default()
    };
    assert_eq!(
        turn(&reply).map_err(|unreadable| unreadable.to_string()),
        turn_with("Last step.\nfinished", vec![call("a/b", &json!({}))], true)
    );
}

#[test]
fn a_model_that_is_offered_tools_is_told_to_call_one() {
    let told = |text: &str, cut: bool| {
        let reply = Reply {
            text: text.to_owned(),
            cut,
            ..Reply::default()
        };
        turn_with_tools(&reply).unwrap_err().to_string()
    };
    assert_eq!(told("", false), format!("The reply is empty. {NATIVE_FORM}"));
    for text in ["I will do it.", r#"The answer is {"answer": 42}."#] {
        assert_eq!(told(text, false), format!("The reply calls no tool. {NATIVE_FORM}"));
    }
    let cut = told("I will", true);
    assert!(
        cut.starts_with("The reply was cut at the length limit before its end"),
        "{cut}"
    );
    assert!(cut.ends_with(NATIVE_FORM), "{cut}");
    let written = Reply {
        text: r#"{"comment": "All good", "done": true}"#.to_owned(),
        ..Reply::default()
    };
    assert!(turn_with_tools(&written).unwrap().done);
}

#[test]
fn a_reply_of_thoughts_alone_is_told_from_an_empty_one() {
    let thought = |cut: bool| Reply {
        cut,
        thought: true,
        ..Reply::default()
    };
    let told = |reply: &Reply| turn(reply).unwrap_err().what;
    let cut = turn(&thought(true)).unwrap_err();
    assert!(
        cut.to_string().contains("about; think less, and reply sooner. "),
        "{cut}"
    );
    assert_eq!(
        cut.what,
        "The reply was cut at the length limit while it was still thought about"
    );
    assert!(told(&thought(false)).starts_with("The reply holds thoughts alone"));
    assert!(told(&thought(true)).starts_with("The reply was cut at the length limit while it was still thought about"));
    let said = Reply {
        text: "Hm.".to_owned(),
        ..thought(false)
    };
    assert_eq!(told(&said), "The reply holds no JSON object");
    assert_eq!(told(&Reply::default()), "The reply is empty");
}

#[test]
fn what_the_model_is_asked_for_is_no_part_of_the_fault() {
    let broken = Reply {
        broken_calls: vec!["Call 1 names no tool".to_owned()],
        ..Reply::default()
    };
    let unreadable = turn(&broken).unwrap_err();
    assert_eq!(unreadable.what, "Call 1 names no tool. Nothing of this reply was run");
    assert_eq!(
        unreadable.to_string(),
        "Call 1 names no tool. Nothing of this reply was run; send the calls again."
    );
    let thought = Reply {
        thought: true,
        ..Reply::default()
    };
    assert_eq!(
        turn_with_tools(&thought).unwrap_err().to_string(),
        format!("The reply holds thoughts alone, which nobody reads; reply behind them. {NATIVE_FORM}")
    );
}

#[test]
fn thinking_is_taken_out_but_not_out_of_strings() {
    assert_eq!(
        without_thinking("<think>a {\"b\":1}</think>\n\nc < d {\"e\":\"<think>\"}"),
        "c < d {\"e\":\"<think>\"}"
    );
    assert_eq!(without_thinking("a\n</think> b"), "b");
    assert_eq!(
        without_thinking("[THINK]a[/THINK] see [1] and x[2]"),
        "see [1] and x[2]"
    );
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
        let nested = json!({"comment": comment, "command": {"tool": "a/b", "args": args}}).to_string();
        let flat = json!({"comment": comment, "tool": "a/b", "args": args}).to_string();
        for text in [nested, flat] {
            prop_assert_eq!(read(&text), turn_with(comment.trim(), vec![call("a/b", &args)], false));
        }
    }

    #[test]
    fn no_reply_makes_it_panic(text in any::<String>()) {
        let _ = read(&text);
    }
}

#[test]
fn the_form_of_hermes_is_read_too() {
    let write = call("write_file", &json!({"path": "a", "content": "x"}));
    for (text, expected) in [
        (
            r#"{"thought": "make it", "tool_calls": [{"name": "write_file", "parameters": {"path": "a", "content": "x"}}]}"#,
            turn_with("make it", vec![write.clone()], false),
        ),
        (
            r#"{"thought": "made", "tool_calls": [{"name": "write_file", "arguments": {"path": "a", "content": "x"}}], "final_answer": "It is there."}"#,
            turn_with("made\nIt is there.", vec![write], true),
        ),
        (
            r#"{"thought": "", "tool_calls": [], "final_answer": "Done."}"#,
            turn_with("Done.", vec![], true),
        ),
        (
            r#"{"tool_calls": [{"name": "a/b"}], "final_answer": null}"#,
            turn_with("", vec![call("a/b", &json!({}))], false),
        ),
    ] {
        assert_eq!(read(text), expected, "{text}");
    }
    for (text, expected) in [
        (
            r#"{"tool_calls": [], "final_answer": ""}"#,
            "`tool_calls` and `final_answer` are both empty.",
        ),
        (
            r#"{"tool_calls": {"name": "a/b"}}"#,
            "`tool_calls` must be a list, not an object.",
        ),
        (r#"{"tool_calls": [{"parameters": {}}]}"#, "a command has no `name`."),
        (
            r#"{"tool_calls": [{"name": "a/b", "parameters": "x"}]}"#,
            "`parameters` of a/b must be an object, not a string.",
        ),
        (
            r#"{"tool_calls": [{"name": "a/b"}], "done": true}"#,
            "two forms of reply are mixed.",
        ),
        (
            r#"{"final_answer": 1}"#,
            "`final_answer` must be a string, not a number.",
        ),
    ] {
        assert_eq!(
            refusal(text),
            format!("In the JSON at line 1, column 1: {expected}"),
            "{text}"
        );
    }
}

proptest! {
    #[test]
    fn both_forms_say_the_same(tools in proptest::collection::vec("[a-z]{1,6}/[a-z_]{1,8}", 0..4), done in any::<bool>(), thought in "[ -~]{0,20}") {
        prop_assume!(done || !tools.is_empty());
        let own: Vec<Value> = tools.iter().map(|tool| json!({"tool": tool, "args": {"x": tool}})).collect();
        let hermes: Vec<Value> = tools.iter().map(|tool| json!({"name": tool, "parameters": {"x": tool}})).collect();
        let answer = if done { "Finished." } else { "" };
        let own = json!({"comment": thought, "commands": own, "done": done}).to_string();
        let hermes = json!({"thought": thought, "tool_calls": hermes, "final_answer": answer}).to_string();
        let (own, hermes) = (read(&own), read(&hermes));
        prop_assume!(own.is_ok());
        let (own, hermes) = (own.unwrap(), hermes.unwrap());
        prop_assert_eq!((own.calls, own.done), (hermes.calls, hermes.done));
    }
}
