//! Puts the chunks of a streamed chat completion together, so that they are read as a whole one is.

use serde_json::{Map, Value, json};

/// Most calls of one reply that are gathered: looking for one among them takes time.
const MOST_CALLS: usize = 1_024;
/// How servers say that they did not finish a reply: `OpenRouter` and Mistral, vLLM and `SGLang`,
/// `DeepSeek`, Z.ai.
const FAILURES: [&str; 4] = ["error", "abort", "insufficient_system_resource", "network_error"];
/// Most characters of what they say besides.
const LONGEST_REASON: usize = 300;
/// Gemini's word for a call that it wrote and could not read.
const MALFORMED: &str = "MALFORMED_FUNCTION_CALL";
/// Most entries of what the model thought, where a server lists them.
const MOST_DETAILS: usize = 1_024;

/// Adds a chunk to the answer, and returns whether the reply is finished.
///
/// # Errors
/// If no reply consists of such chunks.
pub(super) fn add(answer: &mut Value, chunk: Value) -> Result<bool, String> {
    let Value::Object(mut chunk) = chunk else {
        return Err("a chunk of the reply is not an object".to_owned());
    };
    // The last one counts: some servers count from chunk to chunk, others once, behind the reply.
    if let Some(usage) = chunk.remove("usage").filter(Value::is_object) {
        answer["usage"] = usage;
    }
    let choices = chunk.remove("choices").unwrap_or_default();
    let Value::Array(choices) = choices else {
        return Ok(is_finished(answer));
    };
    let is_first = |choice: &Value| choice["index"].as_u64().unwrap_or_default() == 0;
    for mut choice in choices.into_iter().filter(is_first) {
        if answer["choices"].is_null() {
            answer["choices"] = json!([{ "message": { "content": "" } }]);
        }
        let gathered = &mut answer["choices"][0];
        let reason = taken(&mut choice, "finish_reason");
        // A reply that was cut stays cut, whatever is said after.
        if is_reason(&reason) && !is_cut(gathered) {
            gathered["finish_reason"] = reason;
        }
        for key in ["native_finish_reason", "error"] {
            let value = taken(&mut choice, key);
            if !value.is_null() {
                gathered[key] = value;
            }
        }
        let mut delta = taken(&mut choice, "delta");
        if delta.is_null() {
            // Some servers send the last chunk, or all, in the form of a whole message.
            delta = taken(&mut choice, "message");
        }
        if let Value::Object(delta) = delta {
            add_delta(&mut gathered["message"], delta)?;
        }
    }
    Ok(is_finished(answer))
}

/// Returns the text that the last chunks wrote on: the arguments of the last call, or else the text
/// of the reply, or what the model thinks before both.
pub(super) fn written_on(answer: &mut Value) -> Option<&mut String> {
    let message = answer.pointer_mut("/choices/0/message")?;
    let has_calls = message["tool_calls"].as_array().is_some_and(|calls| !calls.is_empty());
    if has_calls {
        let call = message["tool_calls"].as_array_mut()?.last_mut()?;
        return text(call.pointer_mut("/function/arguments")?);
    }
    let fields = ["content", "reasoning_content", "reasoning"];
    let is_begun = |field: &&str| message[*field].as_str().is_some_and(|text| !text.is_empty());
    let field = fields.into_iter().find(is_begun).unwrap_or("content");
    text(message.get_mut(field)?)
}

/// Ends an answer as the server does at the length limit. Thoughts behind which nothing came stay
/// as the text that was cut down: a list of the same would have all that was repeated.
pub(super) fn end_at_limit(answer: &mut Value) {
    let Some(choice) = answer.pointer_mut("/choices/0") else {
        return;
    };
    *field(choice, "finish_reason") = json!("length");
    let Some(Value::Object(message)) = choice.get_mut("message") else {
        return;
    };
    let has_text = |field: &str| message.get(field).is_some_and(|text| !text_of(text).is_empty());
    let calls = message.get("tool_calls").and_then(Value::as_array);
    let has_calls = calls.is_some_and(|calls| !calls.is_empty());
    let is_cut_thought = has_text("reasoning") && !has_text("content") && !has_calls;
    if is_cut_thought {
        message.remove("reasoning_details");
    }
}

/// Tells whether the reply was ended at the length limit.
pub(super) fn is_cut(choice: &Value) -> bool {
    matches!(choice["finish_reason"].as_str(), Some("length" | "model_length"))
}

/// Tells whether a filter of the provider ended the reply.
pub(super) fn is_filtered(choice: &Value) -> bool {
    let reason = choice["finish_reason"].as_str().unwrap_or_default();
    reason.starts_with("content_filter") || reason == "sensitive"
}

/// Returns the server's word for calls of the reply that it could not read, and has left out.
pub(super) fn unread(choice: &Value) -> Option<String> {
    let reasons = [&choice["finish_reason"], &choice["native_finish_reason"]];
    let mut reasons = reasons.into_iter().filter_map(Value::as_str);
    let is_unread = reasons.any(|reason| reason.to_ascii_uppercase().contains(MALFORMED));
    is_unread.then(|| MALFORMED.to_owned())
}

/// Returns why the server broke the reply off, if it says so. What came of it is taken for the
/// whole otherwise.
pub(super) fn failure(choice: &Value) -> Option<String> {
    let reason = choice["finish_reason"].as_str()?;
    let reason = FAILURES.into_iter().find(|failure| *failure == reason)?;
    let said = choice["error"]["message"].as_str().unwrap_or_default();
    let said: String = said.chars().take(LONGEST_REASON).collect();
    let colon = if said.is_empty() { "" } else { ": " };
    Some(format!("it broke its reply off ({reason}){colon}{said}"))
}

fn is_finished(answer: &Value) -> bool {
    is_reason(&answer["choices"][0]["finish_reason"])
}

/// Tells whether a reply ends with this: some servers write an empty text into each chunk, where
/// others write null.
fn is_reason(value: &Value) -> bool {
    value.as_str().is_some_and(|reason| !reason.is_empty())
}

fn add_delta(message: &mut Value, mut delta: Map<String, Value>) -> Result<(), String> {
    for key in ["content", "refusal", "reasoning_content", "reasoning"] {
        let text = text_of(&delta.remove(key).unwrap_or_default());
        if !text.is_empty() {
            append(&mut message[key], &text);
        }
    }
    if let Some(Value::Array(details)) = delta.remove("reasoning_details") {
        for detail in details {
            add_detail(&mut message["reasoning_details"], detail)?;
        }
    }
    let Some(Value::Array(calls)) = delta.remove("tool_calls") else {
        return Ok(());
    };
    if !message["tool_calls"].is_array() {
        message["tool_calls"] = json!([]);
    }
    let gathered = message["tool_calls"].as_array_mut().ok_or("no list of calls")?;
    for call in calls {
        add_call(gathered, call)?;
    }
    Ok(())
}

/// Adds a piece of what the model thought to `OpenRouter`'s list of it. A text comes in pieces, its
/// signature in the last one, all of the same kind and index: sent back in pieces, it would not fit
/// its signature. What is encrypted comes whole, and may have the index of a text.
fn add_detail(gathered: &mut Value, piece: Value) -> Result<(), String> {
    if !gathered.is_array() {
        *gathered = json!([]);
    }
    let gathered = gathered.as_array_mut().ok_or("no list of details")?;
    let (kind, index) = (&piece["type"], &piece["index"]);
    let is_in_pieces = *kind == "reasoning.text" || *kind == "reasoning.summary";
    let begun = gathered
        .last_mut()
        .filter(|last| is_in_pieces && last["type"] == *kind && last["index"] == *index);
    if let (Some(Value::Object(begun)), Value::Object(piece)) = (begun, &piece) {
        for (key, value) in piece.iter().filter(|(_, value)| !value.is_null()) {
            let place = begun.entry(key.as_str()).or_insert(Value::Null);
            match value.as_str() {
                Some(text) if key == "text" || key == "summary" => append(place, text),
                _ => value.clone_into(place),
            }
        }
        return Ok(());
    }
    if gathered.len() == MOST_DETAILS {
        return Err(format!("the reply lists more than {MOST_DETAILS} thoughts"));
    }
    gathered.push(piece);
    Ok(())
}

/// Adds a piece of a call. It belongs to the call with its index; where a server sends no index, or
/// the same for all, an id that is new begins another call.
fn add_call(gathered: &mut Vec<Value>, mut piece: Value) -> Result<(), String> {
    let index = taken(&mut piece, "index");
    let id = piece["id"].as_str().unwrap_or_default().to_owned();
    let is_same = |call: &&mut Value| {
        let is_other = !id.is_empty()
            && call["id"]
                .as_str()
                .is_some_and(|known| !known.is_empty() && known != id);
        !is_other && (index.is_null() || call["index"] == index)
    };
    let has_name = piece["function"]["name"].as_str().is_some_and(|name| !name.is_empty());
    let begins = |call: &&mut Value| index.is_null() && has_name && (id.is_empty() || call["id"] != id.as_str());
    let known = gathered.iter_mut().rev().find(is_same).filter(|call| !begins(call));
    let function = taken(&mut piece, "function");
    let extra = taken(&mut piece, "extra_content");
    let Some(call) = known else {
        if gathered.len() == MOST_CALLS {
            return Err(format!("the reply holds more than {MOST_CALLS} calls"));
        }
        gathered.push(json!({ "index": index, "id": id, "function": function, "extra_content": extra }));
        return Ok(());
    };
    if !extra.is_null() {
        *field(call, "extra_content") = extra;
    }
    if !id.is_empty() {
        call["id"] = json!(id);
    }
    let gathered = &mut call["function"];
    if let Some(name) = function["name"].as_str() {
        // Repeated by some servers in each piece.
        if gathered["name"].as_str().is_none_or(str::is_empty) {
            *field(gathered, "name") = json!(name);
        }
    }
    match &function["arguments"] {
        Value::String(text) => append(field(gathered, "arguments"), text),
        Value::Null => {}
        whole => whole.clone_into(field(gathered, "arguments")),
    }
    Ok(())
}

/// Takes a field out of a value that a server sent; null where there is none. Indexing for a change
/// would panic on what is no object.
pub(super) fn taken(value: &mut Value, key: &str) -> Value {
    value.get_mut(key).map(Value::take).unwrap_or_default()
}

/// Returns a field to be written. What is no object is replaced by one: indexing would panic on it.
pub(super) fn field<'value>(value: &'value mut Value, key: &str) -> &'value mut Value {
    if !value.is_object() {
        *value = json!({});
    }
    &mut value[key]
}

/// Returns the text that the content of a message is, or that its parts are made of: Mistral's
/// models write their thoughts into parts of another type.
pub(super) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter(|part| part["type"] == "text");
            texts.filter_map(|part| part["text"].as_str()).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

/// Returns the text at `place`, if there is one.
pub(super) fn text(place: &mut Value) -> Option<&mut String> {
    match place {
        Value::String(text) => Some(text),
        _ => None,
    }
}

/// Appends `text` to the text at `place`, or begins one.
pub(super) fn append(place: &mut Value, text: &str) {
    match place {
        Value::String(gathered) => gathered.push_str(text),
        place => *place = json!(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(chunks: &[Value]) -> (Value, bool) {
        let mut answer = json!({});
        let mut is_finished = false;
        for chunk in chunks {
            is_finished = add(&mut answer, chunk.clone()).unwrap();
        }
        (answer, is_finished)
    }

    fn delta(delta: &Value) -> Value {
        json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": null }] })
    }

    fn piece(index: &Value, id: &Value, name: &Value, arguments: &str) -> Value {
        delta(
            &json!({ "tool_calls": [{ "index": index, "id": id, "function": { "name": name, "arguments": arguments } }] }),
        )
    }

    fn calls(chunks: &[Value]) -> Vec<[String; 3]> {
        let (answer, _) = whole(chunks);
        let calls = answer["choices"][0]["message"]["tool_calls"].as_array().cloned();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        calls
            .unwrap_or_default()
            .iter()
            .map(|call| [&call["id"], &call["function"]["name"], &call["function"]["arguments"]].map(text))
            .collect()
    }

    #[test]
    fn pieces_of_several_calls_are_told_apart_as_each_server_sends_them() {
        let two = [["a", "f", "{\"x\":1}"], ["b", "g", "{}"]].map(|call| call.map(str::to_owned));
        let null = || Value::Null;
        for chunks in [
            // By index, mixed.
            vec![
                piece(&json!(0), &json!("a"), &json!("f"), ""),
                piece(&json!(1), &json!("b"), &json!("g"), ""),
                piece(&json!(0), &null(), &null(), "{\"x\""),
                piece(&json!(1), &null(), &null(), "{}"),
                piece(&json!(0), &null(), &null(), ":1}"),
            ],
            // The same index for all.
            vec![
                piece(&json!(0), &json!("a"), &json!("f"), "{\"x\":1}"),
                piece(&json!(0), &json!("b"), &json!("g"), "{}"),
            ],
            // Without an index, id and name repeated with each piece or not.
            vec![
                piece(&null(), &json!("a"), &json!("f"), "{\"x\":"),
                piece(&null(), &null(), &null(), "1}"),
                piece(&null(), &json!("b"), &json!("g"), "{}"),
            ],
            vec![
                piece(&json!(0), &json!("a"), &json!("f"), "{\"x\":"),
                piece(&json!(0), &json!("a"), &json!("f"), "1}"),
                piece(&json!(1), &json!("b"), &json!("g"), "{}"),
            ],
        ] {
            assert_eq!(calls(&chunks), two, "{chunks:?}");
        }
    }

    #[test]
    fn thoughts_and_signatures_are_gathered_beside_the_words() {
        let signed = json!({ "google": { "thought_signature": "s" } });
        let (answer, _) = whole(&[
            delta(&json!({ "role": "assistant", "content": "", "reasoning_content": "H" })),
            delta(&json!({ "reasoning_content": "m." })),
            delta(
                &json!({ "tool_calls": [{ "index": 0, "id": "a", "extra_content": signed, "function": { "name": "f", "arguments": "" } }] }),
            ),
            delta(&json!({ "tool_calls": [{ "index": 0, "function": { "arguments": "{}" } }] })),
            piece(&json!(1), &json!("b"), &json!("g"), "{}"),
            delta(&json!({ "tool_calls": [{ "index": 1, "extra_content": signed }] })),
        ]);
        let message = &answer["choices"][0]["message"];
        assert_eq!(message["content"], "");
        assert_eq!(message["reasoning_content"], "Hm.");
        for place in 0..2_usize {
            assert_eq!(message["tool_calls"][place]["extra_content"], signed);
            assert_eq!(message["tool_calls"][place]["function"]["arguments"], "{}");
        }
    }

    #[test]
    fn pieces_of_a_signed_thought_become_the_one_that_was_signed() {
        let detail = |detail: Value| delta(&json!({ "reasoning": "x", "reasoning_details": [detail] }));
        let text = |text: &str, index: u64| detail(json!({ "type": "reasoning.text", "text": text, "index": index }));
        let encrypted =
            |data: &str| json!({ "type": "reasoning.encrypted", "data": data, "id": data, "index": 0, "format": null });
        let (answer, _) = whole(&[
            text("Let me", 0),
            text(" see.", 0),
            detail(json!({ "type": "reasoning.text", "text": null, "signature": "s", "format": "f", "index": 0 })),
            text("And", 1),
            detail(encrypted("a")),
            detail(encrypted("b")),
            detail(json!(7)),
        ]);
        let message = &answer["choices"][0]["message"];
        assert_eq!(
            message["reasoning_details"],
            json!([
                { "type": "reasoning.text", "text": "Let me see.", "signature": "s", "format": "f", "index": 0 },
                { "type": "reasoning.text", "text": "And", "index": 1 },
                encrypted("a"),
                encrypted("b"),
                7,
            ])
        );
        assert_eq!(message["reasoning"], "x".repeat(7));
    }

    #[test]
    fn chunks_that_are_no_objects_where_they_should_be_are_passed_over() {
        let function = |function: &Value| delta(&json!({ "tool_calls": [{ "index": 0, "function": function }] }));
        let (answer, _) = whole(&[
            json!({ "choices": [1, null, "x", [2]] }),
            delta(&json!({ "tool_calls": [1, "x", []] })),
            function(&json!("f")),
            function(&json!({ "name": "f", "arguments": "{}" })),
        ]);
        assert!(answer["choices"][0]["message"]["tool_calls"].is_array());
    }

    #[test]
    fn what_is_written_last_can_be_ended() {
        let written = |chunks: &[Value]| {
            let (mut answer, _) = whole(chunks);
            let text = written_on(&mut answer).cloned();
            end_at_limit(&mut answer);
            (text, is_finished(&answer))
        };
        let said = delta(&json!({ "content": "He" }));
        let called = piece(&json!(0), &json!("a"), &json!("f"), "{\"x\":");
        assert_eq!(written(std::slice::from_ref(&said)), (Some("He".to_owned()), true));
        let thought = |field: &str| delta(&json!({ "content": "", field: "Hm" }));
        for thought in [thought("reasoning_content"), thought("reasoning")] {
            assert_eq!(written(std::slice::from_ref(&thought)), (Some("Hm".to_owned()), true));
            assert_eq!(written(&[thought, said.clone()]), (Some("He".to_owned()), true));
        }
        assert_eq!(written(&[said, called]), (Some("{\"x\":".to_owned()), true));
        assert_eq!(written(&[]), (None, false));
    }

    #[test]
    fn thoughts_that_were_cut_down_are_in_no_list_as_a_whole() {
        let thought = delta(&json!({
            "content": "", "reasoning": "Hm", "reasoning_details": [{ "type": "reasoning.text", "text": "Hm", "index": 0 }],
        }));
        let keeps_list = |chunks: &[Value]| {
            let (mut answer, _) = whole(chunks);
            end_at_limit(&mut answer);
            let message = &answer["choices"][0]["message"];
            assert_eq!(message["reasoning"], "Hm");
            message.get("reasoning_details").is_some()
        };
        assert!(!keeps_list(std::slice::from_ref(&thought)));
        let called = piece(&json!(0), &json!("a"), &json!("f"), "{\"x\":");
        for last in [delta(&json!({ "content": "He" })), called] {
            assert!(keeps_list(&[thought.clone(), last]));
        }
    }

    #[test]
    fn content_in_parts_is_read_without_the_thoughts() {
        let thought = json!([{ "type": "thinking", "thinking": [{ "type": "text", "text": "Hm." }] }]);
        let (answer, _) = whole(&[
            delta(&json!({ "role": "assistant", "content": thought })),
            delta(&json!({ "content": "Hel" })),
            delta(&json!({ "content": [{ "type": "text", "text": "lo" }] })),
        ]);
        assert_eq!(answer["choices"][0]["message"]["content"], "Hello");
    }

    #[test]
    fn an_empty_reason_is_no_end() {
        let chunk = |text: &str, reason: &str| json!({ "choices": [{ "index": 0, "delta": { "content": text }, "finish_reason": reason }] });
        let begun = [chunk("Hel", ""), chunk("lo", "")];
        assert!(!whole(&begun).1);
        let (answer, is_finished) = whole(&[begun.as_slice(), &[chunk("", "stop"), chunk("", "")]].concat());
        assert!(is_finished);
        assert_eq!(answer["choices"][0]["message"]["content"], "Hello");
        assert_eq!(answer["choices"][0]["finish_reason"], "stop");
    }

    #[test]
    fn what_ends_a_reply_is_told_apart() {
        let of = |reason: &str, native: &str| {
            let choice = json!({ "delta": {}, "finish_reason": reason, "native_finish_reason": native });
            let (answer, _) = whole(&[delta(&json!({ "content": "He" })), json!({ "choices": [choice] })]);
            let choice = &answer["choices"][0];
            (
                [is_cut(choice), is_filtered(choice), unread(choice).is_some()],
                failure(choice).is_some(),
            )
        };
        for (reason, native, expected) in [
            ("stop", "STOP", ([false, false, false], false)),
            ("tool_calls", "", ([false, false, false], false)),
            ("length", "MAX_TOKENS", ([true, false, false], false)),
            ("model_length", "", ([true, false, false], false)),
            ("content_filter", "SAFETY", ([false, true, false], false)),
            ("error", "MALFORMED_FUNCTION_CALL", ([false, false, true], true)),
            ("error", "", ([false, false, false], true)),
            ("insufficient_system_resource", "", ([false, false, false], true)),
        ] {
            assert_eq!(of(reason, native), expected, "{reason} {native}");
        }
        let choice = json!({ "finish_reason": "error", "error": { "code": 502, "message": "Provider disconnected" } });
        assert_eq!(
            failure(&choice).unwrap(),
            "it broke its reply off (error): Provider disconnected"
        );
    }

    #[test]
    fn a_reply_that_was_cut_stays_cut_and_the_last_count_holds() {
        let end = |reason: &str| json!({ "choices": [{ "delta": {}, "finish_reason": reason }] });
        let (answer, is_finished) = whole(&[
            json!({ "choices": [], "usage": { "prompt_tokens": 1 } }),
            delta(&json!({ "role": "assistant", "content": "He" })),
            delta(&json!({ "content": "llo", "reasoning_content": "Hm." })),
            end("length"),
            end("stop"),
            json!({ "choices": [{ "index": 1, "delta": { "content": "another" } }] }),
            json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 2 } }),
        ]);
        assert!(is_finished);
        assert_eq!(answer["choices"][0]["message"]["content"], "Hello");
        assert_eq!(answer["choices"][0]["finish_reason"], "length");
        assert_eq!(answer["usage"]["prompt_tokens"], 7);
        assert!(!whole(&[delta(&json!({ "content": "He" }))]).1);
        assert!(add(&mut json!({}), json!([])).is_err());
    }
}
