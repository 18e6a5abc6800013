//! Values that servers send beside the words of a reply, and want or take back with it: what the
//! model thought, under four names, and Gemini's signature with the calls.
//!
//! `DeepSeek` and Kimi refuse a conversation without `reasoning_content`, and `OpenRouter` one
//! whose `reasoning_details` are missing or changed. vLLM, Groq and others take `reasoning` back,
//! and Ollama `thinking`: their models lose the thread between two calls without it. A server that
//! sends none gets none, since it may refuse a field that it does not know; nor does one that has
//! refused them.

use serde_json::{Value, json};

use crate::conversation::{Message, ReplyOrigin, excerpt};

/// The field that servers demand, be it empty.
const DEMANDED: &str = "reasoning_content";
/// The list in which `OpenRouter` has signatures beside the texts.
const DETAILS: &str = "reasoning_details";
/// The fields of a chat completion that hold what the model thought before it. Of several the first
/// is sent back: the others say the same, or less.
const THOUGHTS: [&str; 3] = [DETAILS, DEMANDED, "reasoning"];
/// Ollama's field for the same.
const THINKING: &str = "thinking";
/// The field of a call in which Gemini signs it.
const EXTRA: &str = "extra_content";

/// The replies that go back with what was thought before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SentBack {
    /// The replies whose thoughts are known.
    Known,
    /// All of them, some with an empty text: the server has refused a conversation without.
    All,
    /// None: the server has refused the field.
    Nothing,
}

/// Returns what the server wants back with `message`; null if there is nothing.
pub(super) fn of_message(message: &Value) -> Value {
    let field = THOUGHTS.into_iter().find(|field| holds_something(&message[*field]));
    field.map_or(Value::Null, |field| json!({ field: message[field] }))
}

/// Returns what Ollama takes back with `message`; null if there is nothing.
pub(super) fn of_ollamas_message(message: &Value) -> Value {
    if holds_something(&message[THINKING]) {
        json!({ THINKING: message[THINKING] })
    } else {
        Value::Null
    }
}

fn holds_something(value: &Value) -> bool {
    match value {
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    }
}

/// Returns about how many tokens of thoughts are carried, if there are any. What is encrypted, and
/// signatures, do not count: nobody knows what they stand for.
pub(super) fn estimated_tokens(carried: &Value) -> Option<u64> {
    let of = |thoughts: &Value| -> u64 {
        let details = thoughts.as_array().into_iter().flatten();
        let texts = details.flat_map(|detail| [&detail["text"], &detail["summary"]]);
        let texts = texts.chain([thoughts]).filter_map(Value::as_str);
        texts.map(excerpt::estimated_tokens).sum()
    };
    Some(carried.as_object()?.values().map(of).sum())
}

/// Returns what the server wants back with `call`; null if there is nothing.
pub(super) fn of_call(call: &Value) -> Value {
    call[EXTRA].clone()
}

/// Adds the thoughts to the replies that were `written` from `messages`. A server that sends
/// `reasoning_content` demands it with each reply, also with those that another model gave; an
/// empty text satisfies it.
pub(super) fn write_thoughts(written: &mut [Value], messages: &[Message], sent_back: SentBack) {
    let own = |origin: Option<&ReplyOrigin>| {
        let carried = &origin?.carried;
        THOUGHTS
            .into_iter()
            .find_map(|field| Some((field, carried.get(field)?.clone())))
    };
    let is_with_all = match sent_back {
        SentBack::Nothing => return,
        SentBack::All => true,
        SentBack::Known => origins(messages).any(|origin| own(origin).is_some_and(|(field, _)| field == DEMANDED)),
    };
    for (reply, origin) in replies(written).zip(origins(messages)) {
        let empty = is_with_all.then(|| (DEMANDED, json!("")));
        if let Some((field, thoughts)) = own(origin).or(empty) {
            reply[field] = thoughts;
        }
    }
}

/// Adds the thoughts to the replies that were `written` for Ollama from `messages`.
pub(super) fn write_thinking(written: &mut [Value], messages: &[Message]) {
    for (reply, origin) in replies(written).zip(origins(messages)) {
        if let Some(thoughts) = origin.and_then(|origin| origin.carried.get(THINKING)) {
            reply[THINKING] = thoughts.clone();
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

/// Tells whether `words`, in lower case, demand thoughts that `body` does not send back. Where each
/// of its replies has some, another request would be refused in the same way.
pub(super) fn are_thoughts_demanded(words: &str, body: &Value) -> bool {
    let demands = ["must be passed back", "is missing", "missing field"];
    let messages = body["messages"].as_array().into_iter().flatten();
    let mut replies = messages.filter(|message| message["role"] == "assistant");
    words.contains(DEMANDED)
        && demands.iter().any(|demand| words.contains(demand))
        && replies.any(|reply| THOUGHTS.iter().all(|field| reply.get(*field).is_none()))
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
    let messages = || body["messages"].as_array().into_iter().flatten();
    let is_sent = |field: &str| messages().any(|message| message.get(field).is_some());
    let mut sent = THOUGHTS.into_iter().filter(|field| is_sent(field));
    refusals.iter().any(|refusal| words.contains(refusal)) && sent.any(|field| names(words, field))
}

/// Tells whether `words` hold `field` as a whole name: `reasoning` begins the names of others.
fn names(words: &str, field: &str) -> bool {
    let is_part = |letter: Option<char>| {
        letter.is_some_and(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
    };
    words.match_indices(field).any(|(start, _)| {
        let (before, behind) = (&words[..start], &words[start + field.len()..]);
        !is_part(before.chars().next_back()) && !is_part(behind.chars().next())
    })
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

    fn carrying(carried: Value) -> Message {
        reply(Some(ReplyOrigin {
            model: "m".to_owned(),
            carried,
            ..ReplyOrigin::default()
        }))
    }

    fn calling(id: &str) -> Value {
        json!({ "role": "assistant", "content": "", "tool_calls": [{ "id": id }] })
    }

    fn with(mut message: Value, field: &str, value: Value) -> Value {
        message[field] = value;
        message
    }

    #[test]
    fn each_reply_gets_back_its_own_and_others_an_empty_one_where_it_is_demanded() {
        let origin = ReplyOrigin {
            model: "m".to_owned(),
            carried: of_message(&json!({ "content": "x", "reasoning_content": "Hm." })),
            of_calls: [("a".to_owned(), of_call(&json!({ "extra_content": { "google": "s" } })))].into(),
        };
        let messages = [reply(Some(origin)), reply(None), reply(None)];
        let said = json!({ "role": "assistant", "content": "x" });
        let before = [json!({ "role": "user" }), calling("a"), calling("b"), said.clone()];
        let mut first = with(calling("a"), "reasoning_content", json!("Hm."));
        first["tool_calls"][0]["extra_content"] = json!({ "google": "s" });
        let expected = [
            json!({ "role": "user" }),
            first,
            with(calling("b"), "reasoning_content", json!("")),
            with(said, "reasoning_content", json!("")),
        ];
        let mut written = before;
        write_thoughts(&mut written, &messages, SentBack::Known);
        write_signatures(&mut written, &messages);
        assert_eq!(written, expected);
    }

    #[test]
    fn each_server_gets_its_own_field_and_no_other_one() {
        let details = json!([{ "type": "reasoning.text", "text": "Hm.", "signature": "s" }]);
        for (sent, wanted) in [
            (
                json!({ "reasoning_details": details, "reasoning": "Hm." }),
                json!({ "reasoning_details": details }),
            ),
            (
                json!({ "reasoning_details": [], "reasoning": "Hm.", "reasoning_content": null }),
                json!({ "reasoning": "Hm." }),
            ),
            (
                json!({ "reasoning_content": "Hm.", "reasoning": "Hm." }),
                json!({ "reasoning_content": "Hm." }),
            ),
        ] {
            let carried = of_message(&sent);
            assert_eq!(carried, wanted);
            assert_eq!(estimated_tokens(&carried), Some(excerpt::estimated_tokens("Hm.")));
            let mut written = [calling("a")];
            write_thoughts(&mut written, &[carrying(carried)], SentBack::Known);
            let (field, value) = wanted.as_object().unwrap().iter().next().unwrap();
            assert_eq!(written, [with(calling("a"), field, value.clone())]);
        }
    }

    #[test]
    fn a_server_that_sent_none_gets_none_until_it_demands_them() {
        assert_eq!(
            of_message(&json!({ "content": "x", "reasoning_content": "", "reasoning": null })),
            Value::Null
        );
        assert_eq!(estimated_tokens(&Value::Null), None);
        assert_eq!(of_call(&json!({ "id": "a" })), Value::Null);
        let mut written = [calling("a")];
        let messages = [reply(Some(ReplyOrigin::default()))];
        write_thoughts(&mut written, &messages, SentBack::Known);
        write_signatures(&mut written, &messages);
        assert_eq!(written, [calling("a")]);
        write_thoughts(&mut written, &messages, SentBack::All);
        assert_eq!(written, [with(calling("a"), "reasoning_content", json!(""))]);
        let mut written = [calling("a")];
        let messages = [carrying(json!({ "reasoning_content": "Hm." }))];
        write_thoughts(&mut written, &messages, SentBack::Nothing);
        assert_eq!(written, [calling("a")]);
    }

    #[test]
    fn ollama_gets_back_what_it_sent_beside_the_words() {
        let thought = |text: &str| carrying(of_ollamas_message(&json!({ "content": "", "thinking": text })));
        let messages = [thought("Hm."), reply(None), thought("")];
        let mut written = [calling("a"), calling("b"), calling("c")];
        write_thinking(&mut written, &messages);
        let first = with(calling("a"), "thinking", json!("Hm."));
        assert_eq!(written, [first, calling("b"), calling("c")]);
    }

    #[test]
    fn a_refusal_of_thoughts_is_told_from_a_demand_for_them() {
        let sending = |field: &str| json!({ "messages": [{ "role": "assistant", field: "Hm." }] });
        let without = json!({ "messages": [{ "role": "assistant", "content": "x" }] });
        for (field, words) in [
            (
                "reasoning_content",
                "extra inputs are not permitted: messages.2.reasoning_content",
            ),
            (
                "reasoning_content",
                "('messages.1' : property 'reasoning_content' is unsupported)",
            ),
            ("reasoning", "property 'reasoning' is unsupported, did you mean 'role'?"),
            (
                "reasoning",
                "messages[4].reasoning: reasoning is not supported with this model",
            ),
        ] {
            assert!(are_thoughts_refused(words, &sending(field)), "{words}");
            assert!(!are_thoughts_refused(words, &json!({ "messages": [] })), "{words}");
            assert!(!are_thoughts_demanded(words, &without), "{words}");
        }
        for words in [
            "unsupported value: 'reasoning_effort' does not support 'low' with this model",
            "property 'reasoning_content' is unsupported",
        ] {
            assert!(!are_thoughts_refused(words, &sending("reasoning")), "{words}");
        }
        for words in [
            "the `reasoning_content` in the thinking mode must be passed back to the api.",
            "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
        ] {
            assert!(are_thoughts_demanded(words, &without), "{words}");
            for field in THOUGHTS {
                assert!(!are_thoughts_demanded(words, &sending(field)), "{words}");
            }
            assert!(!are_thoughts_refused(words, &sending("reasoning_content")), "{words}");
        }
    }
}
