//! Reads a server's answer as the reply of a model: the names of tools as the program has them, an
//! id for each native call that no other has, and what is wrong with calls that cannot be read.

use serde_json::Map;

use crate::conversation::{Message, Reply, ToolCall, ToolSpec};
use crate::llm::provider::{Answer, tool_names};

/// Most native calls of one reply: each is compared with all others.
const MOST_CALLS: usize = 128;

/// Returns the reply that `answer` holds, to a prompt of about `needed` tokens that ends `history`.
pub(super) fn read(answer: Answer, needed: u64, tools: &[ToolSpec], history: &[Message]) -> Reply {
    let usage = answer.usage(needed);
    let mut calls: Vec<ToolCall> = Vec::new();
    let mut broken_calls = Vec::new();
    if let Some(reason) = answer.unread {
        broken_calls.push(format!("The server could not read the calls of the reply: {reason}"));
    }
    if answer.calls.len() > MOST_CALLS {
        let given = answer.calls.len();
        broken_calls.push(format!("The reply holds {given} calls, and {MOST_CALLS} are the most"));
    }
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
        let is_taken = |id: &str| knows(history, id) || calls.iter().any(|other| other.id == id);
        let id = if call.id.is_empty() || is_taken(&call.id) {
            own_id(history.len() + place, is_taken)
        } else {
            call.id
        };
        calls.push(ToolCall { id, tool, args });
    }
    Reply {
        text: answer.text,
        calls,
        broken_calls,
        cut: answer.cut,
        repetition: answer.repetition,
        usage,
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
        });
        Answer {
            calls: calls.collect(),
            ..Answer::default()
        }
    }

    fn ids(reply: &Reply) -> Vec<&str> {
        reply.calls.iter().map(|call| call.id.as_str()).collect()
    }

    #[test]
    fn calls_without_an_id_of_their_own_get_one_of_nine_letters_and_digits() {
        let first = read(answer(&["a", "", "a"]), 0, &[], &[]);
        assert_eq!(ids(&first), ["a", "call00001", "call00002"]);
        let history = [Message::Assistant {
            text: String::new(),
            calls: first.calls,
        }];
        // A number that a call has already is passed over, as after a summary of older messages.
        assert_eq!(ids(&read(answer(&["a"]), 0, &[], &history)), ["call00003"]);
    }
}
