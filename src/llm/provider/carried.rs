//! Values that servers of chat completions send beside the words of a reply, and want back with it:
//! `DeepSeek` and Kimi the thoughts, Gemini a signature with the calls.
//!
//! A server that sends none gets none, since it may refuse a field that it does not know.

use serde_json::{Value, json};

use crate::conversation::{Message, ReplyOrigin};

/// The field of a message that holds what the model thought before it.
const THOUGHTS: &str = "reasoning_content";
/// The field of a call in which Gemini signs it.
const EXTRA: &str = "extra_content";

/// Returns what the server wants back with `message`; null if there is nothing.
pub(super) fn of_message(message: &Value) -> Value {
    match message[THOUGHTS].as_str() {
        Some(thoughts) if !thoughts.is_empty() => json!({ THOUGHTS: thoughts }),
        Some(_) | None => Value::Null,
    }
}

/// Returns what the server wants back with `call`; null if there is nothing.
pub(super) fn of_call(call: &Value) -> Value {
    call[EXTRA].clone()
}

/// Adds the thoughts to the replies that were `written` from `messages`. A server that sends
/// reasoning demands the field with every reply that calls; an empty text satisfies it.
pub(super) fn write_thoughts(written: &mut [Value], messages: &[Message]) {
    let thoughts = |origin: Option<&ReplyOrigin>| origin.and_then(|origin| origin.carried.get(THOUGHTS)).cloned();
    let thinks = origins(messages).any(|origin| thoughts(origin).is_some());
    for (reply, origin) in replies(written).zip(origins(messages)) {
        let has_calls = reply.get("tool_calls").is_some();
        if let Some(thoughts) = thoughts(origin).or_else(|| (thinks && has_calls).then(|| json!(""))) {
            reply[THOUGHTS] = thoughts;
        }
    }
}

/// Adds their signatures to the calls of the replies that were `written` from `messages`.
pub(super) fn write_signatures(written: &mut [Value], messages: &[Message]) {
    for (reply, origin) in replies(written).zip(origins(messages)) {
        let Some(origin) = origin else { continue };
        let calls = reply.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten() {
            let carried = call["id"].as_str().and_then(|id| origin.of_calls.get(id));
            if let Some(carried) = carried {
                call[EXTRA] = carried.clone();
            }
        }
    }
}

/// Tells whether `words`, in lower case, refuse the thoughts that `body` sends back.
pub(super) fn are_thoughts_refused(words: &str, body: &Value) -> bool {
    let refusals = [
        "not permitted",
        "not allowed",
        "not support",
        "unsupported",
        "unknown",
        "unrecognized",
        "unexpected",
        "remove",
    ];
    let messages = body["messages"].as_array();
    words.contains(THOUGHTS)
        && refusals.iter().any(|refusal| words.contains(refusal))
        && messages.is_some_and(|messages| messages.iter().any(|message| message.get(THOUGHTS).is_some()))
}

fn replies(written: &mut [Value]) -> impl Iterator<Item = &mut Value> {
    written.iter_mut().filter(|message| message["role"] == "assistant")
}

fn origins(messages: &[Message]) -> impl Iterator<Item = Option<&ReplyOrigin>> {
    messages.iter().filter_map(|message| match message {
        Message::Assistant { origin, .. } => Some(origin.as_ref()),
        Message::System { .. } | Message::User { .. } | Message::Summary { .. } | Message::Results { .. } => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(origin: Option<ReplyOrigin>) -> Message {
        Message::Assistant {
            text: String::new(),
            calls: Vec::new(),
            origin,
        }
    }

    fn calling(id: &str) -> Value {
        json!({ "role": "assistant", "content": "", "tool_calls": [{ "id": id }] })
    }

    #[test]
    fn each_reply_gets_back_its_own() {
        let origin = ReplyOrigin {
            model: "m".to_owned(),
            carried: of_message(&json!({ "content": "x", "reasoning_content": "Hm." })),
            of_calls: [("a".to_owned(), of_call(&json!({ "extra_content": { "google": "s" } })))].into(),
        };
        let messages = [reply(Some(origin)), reply(None), reply(None)];
        let mut written = [
            json!({ "role": "user" }),
            calling("a"),
            calling("b"),
            json!({ "role": "assistant", "content": "x" }),
        ];
        write_thoughts(&mut written, &messages);
        write_signatures(&mut written, &messages);
        let mut first = calling("a");
        first["reasoning_content"] = json!("Hm.");
        first["tool_calls"][0]["extra_content"] = json!({ "google": "s" });
        let mut second = calling("b");
        second["reasoning_content"] = json!("");
        let rest = [
            json!({ "role": "user" }),
            json!({ "role": "assistant", "content": "x" }),
        ];
        let [user, last] = rest;
        assert_eq!(written, [user, first, second, last]);
    }

    #[test]
    fn a_server_that_sent_none_gets_none() {
        assert_eq!(
            of_message(&json!({ "content": "x", "reasoning_content": "" })),
            Value::Null
        );
        assert_eq!(of_call(&json!({ "id": "a" })), Value::Null);
        let mut written = [calling("a")];
        let messages = [reply(Some(ReplyOrigin::default()))];
        write_thoughts(&mut written, &messages);
        write_signatures(&mut written, &messages);
        assert_eq!(written, [calling("a")]);
    }

    #[test]
    fn a_refusal_of_thoughts_is_told_from_a_demand_for_them() {
        let body = json!({ "messages": [{ "role": "assistant", "reasoning_content": "Hm." }] });
        assert!(are_thoughts_refused(
            "extra inputs are not permitted: reasoning_content",
            &body
        ));
        let demand = "the reasoning_content in the thinking mode must be passed back to the api.";
        assert!(!are_thoughts_refused(demand, &body));
        assert!(!are_thoughts_refused(
            "unknown field reasoning_content",
            &json!({ "messages": [] })
        ));
    }
}
