//! The scripted model's work on a task: it commits one file, asks a tool server for the time,
//! writes another file without committing it, and says that it is done. Everything it needs it
//! finds in the conversation, as a real model does, so any number of tasks at once and any
//! interruption are fine.

use serde_json::{Value, json};

use crate::fake::model::{Answer, Plan, Request, Said};

/// The beginning of every task's title; the task's name follows.
pub const TITLE: &str = "Paint the ";

const DONE: &str = "Both walls are painted.";

/// A sentence in the plan that the reviewer lets pass.
const BETTER: &str = "One wall dries while the other is painted.";

/// An MCP server with one tool, which speaks the protocol without a library. Its last argument is
/// there so that the process can be found.
pub const CLOCK: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    answers = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "clock", "version": "1"}},
        "tools/list": {"tools": [{"name": "now", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": "It is noon by this clock."}]},
    }
    if "id" in asked:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answers.get(asked["method"], {})}), flush=True)
"#;

/// Returns the files that a finished task has, with what is in them.
pub fn files(name: &str) -> [(String, &'static str); 2] {
    [
        (format!("{name}-one.txt"), "one\n"),
        (format!("{name}-two.txt"), "two\n"),
    ]
}

/// Returns the subject of the commit that the model makes itself.
pub fn subject(name: &str) -> String {
    format!("Say one for {name}")
}

/// Returns the file that a task has in addition whose result was reviewed.
pub fn reviewed_file(name: &str) -> (String, &'static str) {
    (format!("{name}-three.txt"), "three\n")
}

/// Tells whether a judgement is asked for.
pub fn is_review(request: &Request) -> bool {
    request.system().starts_with("You review documents")
}

fn is_plan(request: &Request) -> bool {
    request.system().contains("\"phase\": \"planning\"")
}

/// Tells whether the task is worked on.
pub fn is_work(request: &Request) -> bool {
    !is_review(request) && !is_plan(request)
}

/// Answers a request of any task at any point.
pub fn answer(request: &Request) -> Answer {
    let task = request.first_user_message();
    let Some(name) = name(&task) else {
        return Answer::says("I was asked for nothing I know.");
    };
    if is_review(request) {
        return judged(&task, &name);
    }
    if is_plan(request) {
        let plan = Plan::of(&["paint one wall", "paint the other"])
            .in_environment("python")
            .verified_by(&format!("grep -q one {name}-one.txt && grep -q two {name}-two.txt"));
        return Answer::plans(if task.contains("It was reviewed, and did not pass") {
            plan.with("comment", json!(BETTER))
        } else {
            plan
        });
    }
    let since = &request.messages[begin(&request.messages)..];
    let is_known = |words: &str| since.iter().any(|said| is_told(said, words));
    let turn = request.messages.len();
    let (one, two) = (format!("{name} has one"), format!("{name} has two"));
    if !is_known(&one) {
        // Asked for again it does nothing, as a careful model would.
        let subject = subject(&name);
        return command(&format!(
            "grep -qs one {name}-one.txt || echo one > {name}-one.txt; git add {name}-one.txt; \
             git diff --cached --quiet || git commit -q -m '{subject}'; echo {name} has $(cat {name}-one.txt) \
             && : {turn}"
        ));
    }
    if !is_known("noon by this clock") {
        return Answer::calls("clock/now", json!({ "turn": turn }));
    }
    if !is_known(&two) {
        return command(&format!(
            "echo two > {name}-two.txt; echo {name} has $(cat {name}-two.txt) && : {turn}"
        ));
    }
    let is_reviewed = |said: &Said| is_told(said, "Your result was reviewed, and did not pass");
    let three = format!("{name} has three");
    if request.messages.iter().any(is_reviewed) && !is_known(&three) {
        return command(&format!(
            "echo three > {name}-three.txt; echo {name} has $(cat {name}-three.txt) && : {turn}"
        ));
    }
    Answer::done(DONE)
}

/// Judges a plan or a result: the first of each is not ready.
fn judged(document: &str, name: &str) -> Answer {
    let (file, _) = reviewed_file(name);
    let is_better = document.contains(BETTER) || document.contains(&format!("diff --git a/{file}"));
    Answer::says(&json!({ "ready_for_implementation": is_better, "score": if is_better { 9 } else { 5 } }).to_string())
}

fn command(command: &str) -> Answer {
    Answer::calls("workspace/execute_command", json!({ "command": command }))
}

/// Returns the place at which the model has to begin again: behind the news of another container,
/// or behind a `done` that was not accepted.
fn begin(messages: &[Said]) -> usize {
    let is_break = |said: &Said| match said {
        Said::Assistant(text, calls) => text.contains(DONE) || calls.iter().any(|call| holds(&call.arguments, DONE)),
        said => is_told(said, "A new container has taken the place"),
    };
    messages.iter().rposition(is_break).map_or(0, |place| place + 1)
}

fn holds(value: &Value, words: &str) -> bool {
    value.to_string().contains(words)
}

fn is_told(said: &Said, words: &str) -> bool {
    match said {
        Said::User(text) | Said::Result(_, text) => text.contains(words),
        _ => false,
    }
}

/// Returns the name of the task whose text this is.
fn name(task: &str) -> Option<String> {
    let (_, rest) = task.split_once(TITLE)?;
    rest.split_whitespace().next().map(str::to_owned)
}
