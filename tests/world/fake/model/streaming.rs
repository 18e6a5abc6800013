//! Replies piece by piece, as servers of each protocol stream them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde_json::{Value, json};

use super::Shared;
use super::conversation::{Protocol, Request};

/// The time between two pieces of a slow stream.
const PAUSE: Duration = Duration::from_millis(300);

/// The time in which what comes before a break is sent.
const SENDING: Duration = Duration::from_millis(50);

/// An event in the middle of a stream.
#[derive(Clone, Debug)]
pub(super) enum Middle {
    /// The stream waits until it is let go.
    Waits,
    BreaksOff,
    /// The rest comes in small pieces, slowly.
    Trickles,
    /// An error takes the place of the rest.
    Fails(Value),
}

/// Notes down when the client goes away before its stream has ended: the server drops the stream
/// then.
struct Client {
    shared: Arc<Shared>,
    has_all: bool,
}

impl Drop for Client {
    fn drop(&mut self) {
        if !self.has_all {
            self.shared.lock().hung_up.push(Instant::now());
            self.shared.ring();
        }
    }
}

/// Tells whether the client wants its reply as a stream.
pub(super) fn is_wanted(request: &Request) -> bool {
    match request.protocol {
        Protocol::ChatCompletions | Protocol::Messages => request.body["stream"] == true,
        Protocol::Ollama => request.body["stream"] != false,
    }
}

/// Sends a whole reply, as [`super::wire`] makes it, as a stream.
pub(super) fn respond(shared: &Arc<Shared>, request: &Request, whole: &Value, middle: Option<Middle>) -> Response {
    let (mut events, kind) = match request.protocol {
        Protocol::ChatCompletions => {
            let no_reason = shared.lock().no_reason.clone();
            (chat_completion(request, whole, &no_reason), "text/event-stream")
        }
        Protocol::Ollama => (ollama(whole), "application/x-ndjson"),
        Protocol::Messages => (message(whole), "text/event-stream"),
    };
    let half = events.len() / 2;
    if let Some(Middle::Fails(error)) = &middle {
        events.truncate(half);
        events.push(match request.protocol {
            Protocol::Ollama => format!("{error}\n"),
            Protocol::ChatCompletions | Protocol::Messages => format!("event: error\ndata: {error}\n\n"),
        });
    }
    let before: usize = events[..half.min(events.len())].iter().map(String::len).sum();
    let bytes = events.concat().into_bytes();
    // Cut where it comes, in the middle of a character too.
    let is_slow = matches!(middle, Some(Middle::Trickles));
    let size = if is_slow || bytes.len() < 8_192 { 61 } else { 4_093 };
    let pieces: Vec<Vec<u8>> = bytes.chunks(size).map(<[u8]>::to_vec).collect();
    let client = Client {
        shared: Arc::clone(shared),
        has_all: pieces.is_empty(),
    };
    let state = (pieces.into_iter(), 0, middle, client);
    let body = stream::unfold(state, move |(mut pieces, sent, mut middle, mut client)| async move {
        if sent >= before {
            match middle.take() {
                Some(Middle::Waits) => client.shared.hold().await,
                Some(Middle::BreaksOff) => {
                    client.has_all = true;
                    // What was not sent yet would be lost with the connection, and nothing arrive.
                    tokio::time::sleep(SENDING).await;
                    let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
                    return Some((Err(broken), (Vec::new().into_iter(), sent, None, client)));
                }
                Some(Middle::Trickles) => {
                    tokio::time::sleep(PAUSE).await;
                    middle = Some(Middle::Trickles);
                }
                Some(Middle::Fails(_)) | None => {}
            }
        }
        let piece: Vec<u8> = pieces.next()?;
        client.has_all = pieces.len() == 0;
        let sent = sent + piece.len();
        Some((Ok(piece), (pieces, sent, middle, client)))
    });
    ([("content-type", kind)], Body::from_stream(body)).into_response()
}

/// Returns a text in about the pieces in which a model makes it.
fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let size = (characters.len() / 64).max(4);
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

/// Returns the chunks of a reply; `no_reason` is the reason of the end in all but the last.
fn chat_completion(request: &Request, whole: &Value, no_reason: &Value) -> Vec<String> {
    let choice = &whole["choices"][0];
    let chunk = |choices: Value| json!({ "id": whole["id"], "object": "chat.completion.chunk", "created": 1, "model": whole["model"], "choices": choices });
    let delta =
        |delta: Value| chunk(json!([{ "index": 0, "delta": delta, "finish_reason": no_reason, "logprobs": null }]));
    let mut chunks = vec![delta(json!({ "role": "assistant", "content": "" }))];
    chunks.extend(thoughts(&choice["message"]).into_iter().map(&delta));
    let text = choice["message"]["content"].as_str().unwrap_or_default();
    chunks.extend(pieces(text).iter().map(|piece| delta(json!({ "content": piece }))));
    let refusal = choice["message"]["refusal"].as_str().unwrap_or_default();
    chunks.extend(pieces(refusal).iter().map(|piece| delta(json!({ "refusal": piece }))));
    let calls = choice["message"]["tool_calls"].as_array().into_iter().flatten();
    for (index, call) in calls.enumerate() {
        let function = json!({ "name": call["function"]["name"], "arguments": "" });
        let mut begin = json!({ "index": index, "id": call["id"], "type": "function", "function": function });
        if let Some(extra) = call.get("extra_content") {
            begin["extra_content"] = extra.clone();
        }
        chunks.push(delta(json!({ "tool_calls": [begin] })));
        let arguments = call["function"]["arguments"].as_str().unwrap_or_default();
        for piece in pieces(arguments) {
            let more = json!({ "index": index, "function": { "arguments": piece } });
            chunks.push(delta(json!({ "tool_calls": [more] })));
        }
    }
    chunks.push(chunk(
        json!([{ "index": 0, "delta": {}, "finish_reason": choice["finish_reason"] }]),
    ));
    if request.body["stream_options"]["include_usage"] == true && whole.get("usage").is_some() {
        let mut last = chunk(json!([]));
        last["usage"] = whole["usage"].clone();
        chunks.push(last);
    }
    let mut events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    // As gateways keep a connection alive while nothing is made.
    events.insert(0, ": PROCESSING\n\n".to_owned());
    events.push("data: [DONE]\n\n".to_owned());
    events
}

/// Returns the pieces of what the model thought. `OpenRouter` has them twice, and the signature of a
/// text in a piece of its own; what is encrypted comes as a whole.
fn thoughts(message: &Value) -> Vec<Value> {
    let Some(details) = message["reasoning_details"].as_array() else {
        let of = |key: &'static str| {
            let text = message[key].as_str().unwrap_or_default();
            pieces(text).into_iter().map(move |piece| json!({ key: piece }))
        };
        return of("reasoning_content").chain(of("reasoning")).collect();
    };
    let mut deltas = Vec::new();
    for detail in details {
        let mut rest = detail.clone();
        let text = rest.as_object_mut().and_then(|rest| rest.remove("text"));
        for piece in pieces(text.as_ref().and_then(Value::as_str).unwrap_or_default()) {
            let part =
                json!({ "type": detail["type"], "text": piece, "format": detail["format"], "index": detail["index"] });
            deltas.push(json!({ "reasoning": piece, "reasoning_details": [part] }));
        }
        deltas.push(json!({ "reasoning_details": [rest] }));
    }
    deltas
}

fn ollama(whole: &Value) -> Vec<String> {
    let line = |message: Value| {
        let line =
            json!({ "model": whole["model"], "created_at": whole["created_at"], "message": message, "done": false });
        format!("{line}\n")
    };
    let thought = whole["message"]["thinking"].as_str().unwrap_or_default();
    let thoughts = pieces(thought)
        .into_iter()
        .map(|piece| line(json!({ "role": "assistant", "content": "", "thinking": piece })));
    let text = whole["message"]["content"].as_str().unwrap_or_default();
    let said = pieces(text)
        .into_iter()
        .map(|piece| line(json!({ "role": "assistant", "content": piece })));
    let mut lines: Vec<String> = thoughts.chain(said).collect();
    for call in whole["message"]["tool_calls"].as_array().into_iter().flatten() {
        lines.push(line(
            json!({ "role": "assistant", "content": "", "tool_calls": [call] }),
        ));
    }
    let mut last = whole.clone();
    last["message"] = json!({ "role": "assistant", "content": "" });
    lines.push(format!("{last}\n"));
    lines
}

fn message(whole: &Value) -> Vec<String> {
    let mut begin = whole.clone();
    begin["content"] = json!([]);
    begin["stop_reason"] = Value::Null;
    begin["stop_details"] = Value::Null;
    if begin["usage"].is_object() {
        begin["usage"]["output_tokens"] = json!(1);
    }
    let mut events = vec![
        json!({ "type": "message_start", "message": begin }),
        json!({ "type": "ping" }),
    ];
    for (index, block) in whole["content"].as_array().into_iter().flatten().enumerate() {
        let mut empty = block.clone();
        let (key, kind, text) = match block["type"].as_str() {
            Some("tool_use") => {
                empty["input"] = json!({});
                let text = match &block["input"] {
                    Value::Object(input) if input.is_empty() => String::new(),
                    input => input.to_string(),
                };
                ("partial_json", "input_json_delta", text)
            }
            Some("thinking") => {
                empty["thinking"] = json!("");
                empty["signature"] = json!("");
                let text = block["thinking"].as_str().unwrap_or_default().to_owned();
                ("thinking", "thinking_delta", text)
            }
            Some("redacted_thinking") => {
                // It comes with its beginning, as a whole.
                events.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
                events.push(json!({ "type": "content_block_stop", "index": index }));
                continue;
            }
            _ => {
                empty["text"] = json!("");
                let text = block["text"].as_str().unwrap_or_default().to_owned();
                ("text", "text_delta", text)
            }
        };
        events.push(json!({ "type": "content_block_start", "index": index, "content_block": empty }));
        let deltas = [String::new()].into_iter().chain(pieces(&text));
        events.extend(deltas.map(
            |piece| json!({ "type": "content_block_delta", "index": index, "delta": { "type": kind, key: piece } }),
        ));
        if block["type"] == "thinking" {
            let signed = json!({ "type": "signature_delta", "signature": block["signature"] });
            events.push(json!({ "type": "content_block_delta", "index": index, "delta": signed }));
        }
        events.push(json!({ "type": "content_block_stop", "index": index }));
    }
    let delta = json!({
        "stop_reason": whole["stop_reason"],
        "stop_sequence": null,
        "stop_details": whole["stop_details"],
    });
    let mut end = json!({ "type": "message_delta", "delta": delta });
    if whole["usage"].is_object() {
        end["usage"] = json!({ "output_tokens": whole["usage"]["output_tokens"] });
    }
    events.push(end);
    events.push(json!({ "type": "message_stop" }));
    let named = |event: &Value| {
        format!(
            "event: {}\ndata: {event}\n\n",
            event["type"].as_str().unwrap_or_default()
        )
    };
    events.iter().map(named).collect()
}
