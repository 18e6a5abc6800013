//! Reads the JSON in a model's reply, whatever the model wrote around it.
//!
//! A working reply is one JSON object, `{"comment", "tool", "args"}`, `{"comment", "command":
//! {"tool", "args"}}` or `{"comment", "done": true}`, or native calls. Models that were trained on
//! it may write the form of Hermes: `{"thought", "tool_calls": [{"name", "parameters"}],
//! "final_answer"}`; or end with native calls that its server did not read, each `{"name",
//! "arguments"}` in a tag `<tool_call>`. What is returned was said by the model, and is no echo of
//! a prompt's example, which names its tool `name` or `server/tool` and comments `why`.
//!
//! Two *different* answers in one reply are refused, not chosen from. The last one would be wrong
//! where a small model plays both sides (it writes a command, invents the output and calls itself
//! done); the first one would be wrong where it drafts and then decides; running all of them would
//! run the draft. Asking again costs one call.

mod lenient;
mod search;
mod turns;
pub mod paths; // the path of a file in a line or a word
mod likeness; // the shown file that a text is made of
mod first_line; // what the first line of a text is that names a file
pub mod files; // a reply that holds whole files
#[cfg(test)]
mod tests;

use std::ops::Range;

use serde_json::{Map, Value};

use super::{Reply, ToolCall, Turn};
use turns::{hermes_turn_of, joined, tagged_calls_of, text_of, turn_of};

/// The pseudo tool by which a model with native calls says that it is done.
pub const DONE: &str = "done";

/// The tools of the prompts' examples, older ones included.
const EXAMPLE_TOOLS: [&str; 2] = ["name", "server/tool"];
/// The comments of the prompts' examples.
const EXAMPLE_COMMENTS: [&str; 2] = ["why", "what was done, for the people who asked"];
/// The fault of a reply whose comment is one of these.
const EXAMPLE_REPEATED: &str = "The reply repeats the example of the prompt";

/// Keys of which one tells a working reply from other objects.
const OWN_KEYS: [&str; 4] = ["tool", "command", "commands", "done"];
/// The same for a reply in the form of Hermes.
const HERMES_KEYS: [&str; 2] = ["tool_calls", "final_answer"];
/// Keys of a result, as the program writes it.
const RESULT_KEYS: [&str; 2] = ["output", "is_error"];

const FORM: &str = "Reply with exactly one JSON object: \
    {\"comment\":\"why\",\"tool\":\"name\",\"args\":{}} to run a tool \
    (\"commands\":[{\"tool\":...,\"args\":...}] for several), or {\"comment\":\"why\",\"done\":true} when all is done.";
/// The same for a model that is offered the tools natively.
const NATIVE_FORM: &str = "Call a tool, or call `done` with a comment when the whole task is finished and checked.";

/// The reason why a reply could not be read. As text it is what is sent to the model; people are
/// told the fault alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{what}{}{request}.{}{form}",
    if request.is_empty() { "" } else { "; " },
    if form.is_empty() { "" } else { " " }
)]
pub struct Unreadable {
    /// The fault, in words for people and the model, without a full stop.
    pub what: String,
    /// A request to the model because of the fault, without a full stop; empty if there is none.
    pub request: &'static str,
    /// The right form of the reply, if it is worth repeating.
    pub form: &'static str,
}

impl Unreadable {
    pub fn new(what: impl Into<String>) -> Self {
        Self::with_request(what, "")
    }

    pub fn with_form(what: impl Into<String>, form: &'static str) -> Self {
        Self::new(what).in_form(form)
    }

    fn with_request(what: impl Into<String>, request: &'static str) -> Self {
        Self {
            what: what.into(),
            request,
            form: "",
        }
    }

    /// Returns the same fault, with `form` as the right form of the reply.
    #[must_use]
    pub fn in_form(self, form: &'static str) -> Self {
        Self { form, ..self }
    }
}

/// Returns the turn that a working reply holds, from native calls or from JSON in its text.
pub fn turn(reply: &Reply) -> Result<Turn, Unreadable> {
    turn_of_reply(reply, FORM, without_json)
}

/// Like [`turn`], of a model that is offered its tools natively, and is told to call one of them
/// where a reply cannot be read.
pub fn turn_with_tools(reply: &Reply) -> Result<Turn, Unreadable> {
    turn_of_reply(reply, NATIVE_FORM, without_calls)
}

/// Reads a reply; `missing` says what is wrong with one in which nothing was meant as a turn.
fn turn_of_reply(
    reply: &Reply,
    form: &'static str,
    missing: fn(&Reply, &search::Found) -> String,
) -> Result<Turn, Unreadable> {
    if !reply.broken_calls.is_empty() {
        let cut = match (&reply.repetition, reply.cut) {
            (Some(_), _) => " The reply repeated itself over and over, and was ended there.",
            (None, true) => " The reply was cut at the length limit: write large files in several calls.",
            (None, false) => "",
        };
        let what = format!("{}.{cut} Nothing of this reply was run", reply.broken_calls.join("; "));
        return Err(Unreadable::with_request(what, "send the calls again"));
    }
    if reply.calls.is_empty() {
        return written_turn(reply, missing).map_err(|unreadable| unreadable.in_form(form));
    }
    Ok(native_turn(reply))
}

/// Returns the JSON objects in `text`, in order: in fences, in prose and after `<think>…</think>`,
/// with trailing commas and single quotes repaired and comments left out. Objects inside objects or
/// strings are not listed.
pub fn objects(text: &str) -> Vec<Value> {
    let found = search::search(text);
    found
        .objects
        .into_iter()
        .map(|(_, object)| Value::Object(object))
        .collect()
}

/// Returns the same objects as [`objects`], each with its place in `text`.
pub fn objects_with_places(text: &str) -> Vec<(Range<usize>, Map<String, Value>)> {
    search::search(text).objects
}

/// Returns the comments in the objects of `text`, each from its `//` to the end of its line.
pub fn comments(text: &str) -> Vec<&str> {
    let places = search::search(text).comments;
    places.into_iter().map(|place| &text[place]).collect()
}

/// Returns `text` without the model's thinking.
pub fn without_thinking(text: &str) -> String {
    search::search(text).said.trim().to_owned()
}

/// Tells whether `text` ends while the model still thinks.
pub fn ends_in_thought(text: &str) -> bool {
    search::search(text).ends_in_thought
}

/// Reads `text` as the arguments of a native call, which must be one whole object; the error says
/// what is wrong with them.
pub fn arguments(text: &str) -> Result<Map<String, Value>, String> {
    let start = text.len() - text.trim_start().len();
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    if !text[start..].starts_with('{') {
        return Err("the arguments are not a JSON object".to_owned());
    }
    match lenient::object(text, start) {
        Ok(object) if text[object.end..].trim().is_empty() => Ok(object.content),
        Ok(object) => Err(format!(
            "the arguments go on behind their end at {}",
            position(text, object.end)
        )),
        Err(fault) => Err(format!(
            "the arguments are broken at {}: {}",
            position(text, fault.at),
            fault.what
        )),
    }
}

/// Returns the reason why `reply` holds no object of the wanted kind, if something in it is plainly
/// wrong.
pub fn fault(reply: &Reply) -> Option<Unreadable> {
    fault_in(reply, &search::search(&reply.text))
}

fn fault_in(reply: &Reply, found: &search::Found) -> Option<Unreadable> {
    if reply.repetition.is_some() {
        return Some(Unreadable::with_request(
            "The reply repeated the same text over and over, and was ended there",
            "write it once",
        ));
    }
    if reply.cut && reply.is_only_thought() {
        return Some(Unreadable::with_request(
            "The reply was cut at the length limit while it was still thought about",
            "think less, and reply sooner",
        ));
    }
    if reply.cut {
        return Some(Unreadable::with_request(
            "The reply was cut at the length limit before its end",
            "send a shorter one, large files in several calls",
        ));
    }
    if let Some((start, fault)) = &found.broken {
        return Some(Unreadable::new(format!(
            "The JSON that begins at {} is broken at {}: {}",
            position(&reply.text, *start),
            position(&reply.text, fault.at),
            fault.what
        )));
    }
    if reply.is_only_thought() {
        return Some(Unreadable::with_request(
            "The reply holds thoughts alone, which nobody reads",
            "reply behind them",
        ));
    }
    found
        .ends_in_thought
        .then(|| Unreadable::new("The reply ends inside its thinking, without an answer"))
}

fn written_turn(reply: &Reply, missing: fn(&Reply, &search::Found) -> String) -> Result<Turn, Unreadable> {
    let found = search::search(&reply.text);
    let mut answer: Option<(usize, Turn)> = None;
    // The position is turned into words only at the end: counting the lines up to each of thousands
    // of objects would take for ever.
    let mut problem: Option<(Option<usize>, String)> = None;
    for (Range { start, .. }, object) in &found.objects {
        if is_result(object) {
            // Results come from the program only. Whatever follows was built on invented ones.
            let what = "The reply holds a result of its own; only the program sends results";
            problem = Some((None, what.to_owned()));
            break;
        }
        let has = |keys: &[&str]| keys.iter().any(|key| object.contains_key(*key));
        let turn = match (has(&OWN_KEYS), has(&HERMES_KEYS)) {
            (false, false) => continue,
            (true, false) => turn_of(object),
            (false, true) => hermes_turn_of(object),
            (true, true) => Err("two forms of reply are mixed".to_owned()),
        };
        match turn {
            Ok(turn) if is_example(&turn) => {
                problem = Some((None, EXAMPLE_REPEATED.to_owned()));
            }
            Ok(turn) => match &answer {
                Some((_, earlier)) if *earlier == turn => {}
                Some((earlier, _)) => {
                    return Err(Unreadable::new(format!(
                        "The reply holds two different answers, at {} and {}, and none of it was run",
                        position(&reply.text, *earlier),
                        position(&reply.text, *start)
                    )));
                }
                None => answer = Some((*start, turn)),
            },
            Err(what) => problem = Some((Some(*start), what)),
        }
    }
    if let Some((_, turn)) = answer {
        return Ok(turn);
    }
    if problem.is_none()
        && let Some(turn) = tagged_turn(&found)
    {
        return turn.map_err(Unreadable::new);
    }
    let problem = problem.map(|(start, what)| match start {
        Some(start) => format!("In the JSON at {}: {what}", position(&reply.text, start)),
        None => what,
    });
    Err(problem
        .map(Unreadable::new)
        .or_else(|| fault_in(reply, &found))
        .unwrap_or_else(|| Unreadable::new(missing(reply, &found))))
}

/// Returns the turn of a reply that ends with tagged calls and holds no other object.
fn tagged_turn(found: &search::Found) -> Option<Result<Turn, String>> {
    let (comment, calls) = match tagged_calls_of(&found.said)? {
        Ok(read) => read,
        Err(what) => return Some(Err(format!("In a <tool_call>: {what}"))),
    };
    if calls.len() != found.objects.len() {
        return None;
    }
    let turn = turn_of_calls(comment, calls);
    Some(if is_example(&turn) {
        Err(EXAMPLE_REPEATED.to_owned())
    } else {
        Ok(turn)
    })
}

fn without_json(reply: &Reply, found: &search::Found) -> String {
    match found.objects.first() {
        Some((Range { start, .. }, _)) => format!(
            "The JSON at {} has neither `tool` nor `done`",
            position(&reply.text, *start)
        ),
        None if reply.text.trim().is_empty() => "The reply is empty".to_owned(),
        None => "The reply holds no JSON object".to_owned(),
    }
}

fn without_calls(reply: &Reply, _: &search::Found) -> String {
    let what = if reply.text.trim().is_empty() {
        "The reply is empty"
    } else {
        "The reply calls no tool"
    };
    what.to_owned()
}

fn is_example(turn: &Turn) -> bool {
    let is_examples = |call: &ToolCall| EXAMPLE_TOOLS.contains(&call.tool.as_str());
    turn.calls.iter().any(is_examples)
        || (turn.done && turn.calls.is_empty() && EXAMPLE_COMMENTS.contains(&turn.comment.as_str()))
}

/// Tells whether an object is what the program sends as the result of calls.
fn is_result(object: &Map<String, Value>) -> bool {
    let is_one = || object.keys().all(|key| RESULT_KEYS.contains(&key.as_str()));
    object.contains_key("previous_output") || (object.contains_key("output") && is_one())
}

fn native_turn(reply: &Reply) -> Turn {
    let found = search::search(&reply.text);
    // A model that was shown the JSON form may write it besides its native calls; the calls count,
    // the comment is kept.
    let written = found
        .objects
        .iter()
        .find_map(|(_, object)| object.get("comment")?.as_str().map(str::to_owned));
    let comment = written.unwrap_or_else(|| found.said.trim().to_owned());
    turn_of_calls(comment, reply.calls.clone())
}

/// Returns the turn of `calls`, of which the pseudo tool [`DONE`] ends the work.
fn turn_of_calls(comment: String, calls: Vec<ToolCall>) -> Turn {
    let (done, calls): (Vec<_>, Vec<_>) = calls.into_iter().partition(|call| call.tool == DONE);
    let mut comments = vec![comment];
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

/// Returns the line and column of `offset` in `text`, for people and models.
fn position(text: &str, offset: usize) -> String {
    let before = &text[..offset];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    format!(
        "line {}, column {}",
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1
    )
}
