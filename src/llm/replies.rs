//! Reads a server's answer as the reply of a model: the names of tools as the program has them, an
//! id for each native call that no other has, and what is wrong with calls that cannot be read.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::conversation::{Message, Reply, ReplyOrigin, ToolCall, ToolSpec};
use crate::llm::provider::{Answer, tool_names};

/// Most native calls of one reply: each is compared with all others.
const MOST_CALLS: usize = 128;
/// Most bytes that a model gets back with one reply: more than any of them thinks at once. They are
/// stored, and sent with each later request.
const MOST_CARRIED: usize = 1 << 20;

/// The request that an answer is to.
pub(super) struct AnsweredRequest<'chat> {
    /// Who was asked, as [`ReplyOrigin::model`].
    pub(super) model: String,
    /// About how many tokens it has.
    pub(super) needed: u64,
    pub(super) is_native: bool,
    pub(super) tools: &'chat [ToolSpec],
    pub(super) history: &'chat [Message],
}

/// Returns the reply that `answer` holds, and what is kept of it for the model alone.
pub(super) fn read(answer: Answer, asked: AnsweredRequest<'_>) -> (Reply, Option<ReplyOrigin>) {
    let AnsweredRequest { tools, history, .. } = asked;
    let usage = answer.usage(asked.needed);
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut of_calls = BTreeMap::new();
    let mut broken_calls = Vec::new();
    if let Some(reason) = answer.unread {
        broken_calls.push(format!("The server could not read the calls of the reply: {reason}"));
    }
    if answer.calls.len() > MOST_CALLS {
        let given = answer.calls.len();
        broken_calls.push(format!("The reply holds {given} calls, and {MOST_CALLS} are the most"));
    }
    let last = answer.calls.len().saturating_sub(1);
    for (place, call) in answer.calls.into_iter().take(MOST_CALLS).enumerate() {
        if call.name.is_empty() {
            broken_calls.push(format!("Call {} names no tool", place + 1));
            continue;
        }
        let tool = tool_names::our_name(tools, &call.name);
        let args = call.args.unwrap_or_else(|unreadable| {
            broken_calls.push(format!("In the call of {tool}, {unreadable}"));
            Map::new()
        });
        // Where the length limit ends a reply behind the name of a tool, nothing else is left of
        // the call: `done` would end the work.
        if answer.cut && place == last && args.is_empty() && broken_calls.is_empty() {
            broken_calls.push(format!("In the call of {tool}, the arguments are missing"));
        }
        let is_taken = |id: &str| knows(history, id) || calls.iter().any(|other| other.id == id);
        let id = if call.id.is_empty() || is_taken(&call.id) {
            own_id(history.len() + place, is_taken)
        } else {
            call.id
        };
        if !call.carried.is_null() {
            of_calls.insert(id.clone(), call.carried);
        }
        calls.push(ToolCall { id, tool, args });
    }
    // A thought that was cut led to nothing, and would be sent with each later request.
    let is_whole_thought = asked.is_native && !answer.carried.is_null() && !answer.cut;
    let is_kept = !calls.is_empty() || is_whole_thought;
    let origin = is_kept.then(|| origin(asked.model, answer.carried, of_calls));
    let reply = Reply {
        text: answer.text,
        calls,
        broken_calls,
        cut: answer.cut,
        repetition: answer.repetition,
        thought: answer.thoughts.is_some(),
        usage,
    };
    (reply, origin)
}

/// Returns the origin of a reply. What is too large is left out as a whole: a signature of a part
/// fits nothing. Without it the model would refuse its own calls, so nobody is named, and they are
/// sent as text.
fn origin(model: String, carried: Value, of_calls: BTreeMap<String, Value>) -> ReplyOrigin {
    let bytes: usize = of_calls
        .values()
        .chain([&carried])
        .map(|value| value.to_string().len())
        .sum();
    if bytes > MOST_CARRIED {
        tracing::warn!(
            bytes,
            "{model} does not get back what it thought: it is too much to keep"
        );
        return ReplyOrigin::default();
    }
    ReplyOrigin {
        model,
        carried,
        of_calls,
    }
}

/// Returns an id that no other call has. It has nine letters and digits, as the templates of
/// Mistral's models demand.
fn own_id(first: usize, is_taken: impl Fn(&str) -> bool) -> String {
    let mut ids = (first..).map(|number| format!("call{number:05}"));
    ids.find(|id| !is_taken(id)).unwrap_or_default()
}

/// Tells whether a call with this id is in the history: some servers number each reply anew.
fn knows(history: &[Message], id: &str) -> bool {
    history.iter().any(|message| match message {
        Message::Assistant { calls, .. } => calls.iter().any(|call| call.id == id),
        Message::System { .. } | Message::User { .. } | Message::Summary { .. } | Message::Results { .. } => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::llm::provider::NativeCall;

    fn answer(ids: &[&str]) -> Answer {
        let calls = ids.iter().map(|id| NativeCall {
            id: (*id).to_owned(),
            name: "bash".to_owned(),
            args: Ok(Map::new()),
            carried: Value::from(format!("signature of {id}")),
        });
        Answer {
            calls: calls.collect(),
            ..Answer::default()
        }
    }

    fn asked(history: &[Message]) -> AnsweredRequest<'_> {
        AnsweredRequest {
            model: "m".to_owned(),
            needed: 0,
            is_native: true,
            tools: &[],
            history,
        }
    }

    fn ids(reply: &Reply) -> Vec<&str> {
        reply.calls.iter().map(|call| call.id.as_str()).collect()
    }

    #[test]
    fn calls_without_an_id_of_their_own_get_one_of_nine_letters_and_digits() {
        let (first, origin) = read(answer(&["a", "", "a"]), asked(&[]));
        assert_eq!(ids(&first), ["a", "call00001", "call00002"]);
        let of_calls = origin.as_ref().unwrap().of_calls.keys();
        assert_eq!(of_calls.collect::<Vec<_>>(), ["a", "call00001", "call00002"]);
        let history = [Message::Assistant {
            text: String::new(),
            calls: first.calls,
            origin,
        }];
        // A number that a call has already is passed over, as after a summary of older messages.
        assert_eq!(ids(&read(answer(&["a"]), asked(&history)).0), ["call00003"]);
    }

    #[test]
    fn a_call_that_a_cut_left_without_arguments_is_broken_and_others_are_not() {
        let broken = |calls: &[&str], cut: bool| {
            let answer = Answer { cut, ..answer(calls) };
            read(answer, asked(&[])).0.broken_calls
        };
        assert_eq!(broken(&["a"], true), ["In the call of bash, the arguments are missing"]);
        assert_eq!(broken(&["a", "b"], true).len(), 1);
        assert_eq!(broken(&["a", "b"], false), [""; 0]);
    }

    #[test]
    fn what_is_carried_is_kept_within_bounds_and_only_for_native_replies() {
        let thoughts = |bytes: usize| Answer {
            carried: Value::from("x".repeat(bytes)),
            ..Answer::default()
        };
        let (_, origin) = read(thoughts(3), asked(&[]));
        let expected = ReplyOrigin {
            model: "m".to_owned(),
            carried: Value::from("xxx"),
            of_calls: BTreeMap::new(),
        };
        assert_eq!(origin, Some(expected));
        let cut = Answer {
            cut: true,
            ..thoughts(3)
        };
        assert_eq!(read(cut, asked(&[])).1, None);
        let (_, origin) = read(thoughts(MOST_CARRIED), asked(&[]));
        assert_eq!(origin, Some(ReplyOrigin::default()));
        let in_json = AnsweredRequest {
            is_native: false,
            ..asked(&[])
        };
        assert_eq!(read(thoughts(3), in_json).1, None);
    }
}
