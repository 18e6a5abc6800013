//! Replies and errors in the words of each protocol.

use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::response::Response;
use futures_util::stream;
use serde_json::Value;
use serde_json::json;

use super::NAME;
use super::conversation::Protocol;
use super::conversation::Request;
use super::script::Answer;
use super::tokens;

/// The models that are listed: the scripted one, and those a configuration names when it names
/// none.
const LISTED: [&str; 5] = [
    NAME,
    "qwen3-coder:30b",
    "qwen/qwen3-coder-30b",
    "gpt-5-mini",
    "claude-sonnet-4-5",
];

/// Makes an answer of a server that counts no tokens.
pub(super) fn take_counts_out(body: &mut Value) {
    for key in ["usage", "prompt_eval_count", "eval_count"] {
        body.as_object_mut().map(|body| body.remove(key));
    }
}

/// A reply, before a protocol puts it into its own words.
struct Spoken {
    text: String,
    /// Native calls: id, name and arguments.
    calls: Vec<(String, String, Value)>,
    is_cut: bool,
    refusal: Option<String>,
    input: u64,
    output: u64,
}

pub(super) fn reply_body(request: &Request, answer: &Answer) -> Value {
    let is_native = !request.offered.is_empty() && answer.text.is_none();
    let text = match &answer.text {
        Some(text) => text.clone(),
        None if is_native && answer.is_done && answer.calls.is_empty() => String::new(),
        None if is_native => answer.comment.clone(),
        None => written(answer),
    };
    let mut calls: Vec<(String, Value)> = Vec::new();
    if is_native {
        for (tool, args) in &answer.calls {
            let name = request
                .offered_name(tool)
                .map_or_else(|| tool.replace('/', "__"), str::to_owned);
            calls.push((name, args.clone()));
        }
        if answer.is_done {
            calls.push(("done".to_owned(), json!({ "comment": answer.comment })));
        }
    }
    // Ids must differ between the replies of a conversation.
    let turn = request.messages.len();
    let with_id = |(place, (name, args))| (format!("call_{turn}_{place}"), name, args);
    let spoken = Spoken {
        calls: calls.into_iter().enumerate().map(with_id).collect(),
        is_cut: answer.is_cut,
        refusal: answer.refusal.clone(),
        input: answer.prompt_tokens.unwrap_or_else(|| tokens(&request.seen)),
        output: tokens(&text),
        text,
    };
    match request.protocol {
        Protocol::ChatCompletions => chat_completion(request, &spoken),
        Protocol::Ollama => ollama(request, &spoken),
        Protocol::Messages => message(request, &spoken),
    }
}

fn chat_completion(request: &Request, spoken: &Spoken) -> Value {
    let mut message = json!({ "role": "assistant", "content": spoken.text, "refusal": null });
    if !spoken.calls.is_empty() {
        let calls = spoken.calls.iter().map(|(id, name, args)| {
            json!({ "id": id, "type": "function", "function": { "name": name, "arguments": args.to_string() } })
        });
        message["tool_calls"] = calls.collect();
        if spoken.text.is_empty() {
            message["content"] = Value::Null;
        }
    }
    let mut reason = spoken.reason("length", "stop", "tool_calls");
    match spoken.refusal.as_deref() {
        Some("") => {
            message["content"] = json!("What was written bef");
            reason = "content_filter";
        }
        Some(words) => {
            message["content"] = Value::Null;
            message["refusal"] = json!(words);
        }
        None => {}
    }
    json!({
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_700_000_000,
        "model": request.model,
        "choices": [{ "index": 0, "message": message, "finish_reason": reason, "logprobs": null }],
        "usage": {
            "prompt_tokens": spoken.input,
            "completion_tokens": spoken.output,
            "total_tokens": spoken.input + spoken.output,
            "prompt_tokens_details": { "cached_tokens": spoken.input / 2 },
        },
    })
}

fn ollama(request: &Request, spoken: &Spoken) -> Value {
    let mut message = json!({ "role": "assistant", "content": spoken.text });
    if !spoken.calls.is_empty() {
        // Without ids, as servers of many versions send them.
        let calls = spoken
            .calls
            .iter()
            .map(|(_, name, args)| json!({ "function": { "name": name, "arguments": args } }));
        message["tool_calls"] = calls.collect();
    }
    json!({
        "model": request.model,
        "created_at": "2026-01-01T00:00:00Z",
        "message": message,
        "done": true,
        "done_reason": spoken.reason("length", "stop", "stop"),
        "total_duration": 1,
        "prompt_eval_count": spoken.input,
        "eval_count": spoken.output,
    })
}

fn message(request: &Request, spoken: &Spoken) -> Value {
    let mut content = Vec::new();
    if !spoken.text.is_empty() {
        content.push(json!({ "type": "text", "text": spoken.text }));
    }
    for (id, name, args) in &spoken.calls {
        content.push(json!({ "type": "tool_use", "id": id, "name": name, "input": args }));
    }
    let (mut reason, mut details) = (spoken.reason("max_tokens", "end_turn", "tool_use"), Value::Null);
    if let Some(words) = &spoken.refusal {
        reason = "refusal";
        if !words.is_empty() {
            details = json!({ "type": "refusal", "category": null, "explanation": words });
        }
    }
    json!({
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": content,
        "stop_reason": reason,
        "stop_sequence": null,
        "stop_details": details,
        "container": null,
        "usage": {
            "input_tokens": spoken.input - spoken.input / 2 - spoken.input / 4,
            "cache_read_input_tokens": spoken.input / 2,
            "cache_creation_input_tokens": spoken.input / 4,
            "cache_creation": null,
            "output_tokens": spoken.output,
        },
    })
}

impl Spoken {
    fn reason<'word>(&self, cut: &'word str, said: &'word str, called: &'word str) -> &'word str {
        match (self.is_cut, self.calls.is_empty()) {
            (true, _) => cut,
            (false, true) => said,
            (false, false) => called,
        }
    }
}

/// The working reply as JSON text.
fn written(answer: &Answer) -> String {
    let commands: Vec<Value> = answer
        .calls
        .iter()
        .map(|(tool, args)| json!({ "tool": tool, "args": args }))
        .collect();
    let mut reply = json!({ "comment": answer.comment });
    match commands.as_slice() {
        [] => {}
        [one] => reply["command"] = one.clone(),
        several => reply["commands"] = json!(several),
    }
    if answer.is_done {
        reply["done"] = json!(true);
    }
    reply.to_string()
}

/// Answers with an error in the words of the protocol that the path belongs to.
pub(super) fn error(path: &str, status: StatusCode, code: &str, message: &str) -> Response {
    let body = if path.starts_with("/api/") {
        json!({ "error": message })
    } else if path.starts_with("/v1/messages") {
        json!({ "type": "error", "error": { "type": code, "message": message } })
    } else {
        json!({ "error": { "message": message, "type": code, "param": null, "code": code } })
    };
    (status, Json(body)).into_response()
}

pub(super) fn too_long(request: &Request) -> Response {
    let bad = StatusCode::BAD_REQUEST;
    match request.protocol {
        Protocol::ChatCompletions => error(
            "/v1/chat/completions",
            bad,
            "context_length_exceeded",
            "This model's maximum context length is 4096 tokens.",
        ),
        Protocol::Ollama => error(
            "/api/chat",
            bad,
            "",
            "the prompt is too long for the context length of 4096",
        ),
        Protocol::Messages => error(
            "/v1/messages",
            bad,
            "invalid_request_error",
            "prompt is too long: 5000 tokens > 4096 maximum",
        ),
    }
}

/// Sends the first half of a body, and breaks off.
pub(super) fn half_of(body: &Value) -> Response {
    let text = body.to_string();
    let half = text.as_bytes()[..text.len() / 2].to_vec();
    let broken = std::io::Error::from(std::io::ErrorKind::ConnectionReset);
    let parts = stream::iter([Ok(half), Err(broken)]);
    ([("content-type", "application/json")], Body::from_stream(parts)).into_response()
}

/// Lists the one model of llama.cpp's server.
pub(super) fn only_model(window: u64) -> Response {
    let meta = json!({ "n_vocab": 49_152, "n_ctx": window, "n_ctx_train": 2 * window, "n_params": 134_515_008 });
    let model = json!({ "id": "small.gguf", "object": "model", "created": 0, "owned_by": "llamacpp", "meta": meta });
    Json(json!({ "object": "list", "data": [model] })).into_response()
}

/// Answers questions about the server and its models.
pub(super) fn about_the_server(path: &str, body: &Value, takes_tools: bool) -> Response {
    let listed = |name: &str| json!({ "id": name, "object": "model", "created": 0, "owned_by": "fake", "type": "model", "display_name": name });
    let not_found = |name: &str| {
        let message = format!("model '{name}' not found");
        error(path, StatusCode::NOT_FOUND, "not_found_error", &message)
    };
    match path {
        "/api/version" => Json(json!({ "version": "0.32.9" })).into_response(),
        "/api/tags" => {
            let models: Vec<_> = LISTED
                .iter()
                .map(|name| json!({ "name": name, "model": name }))
                .collect();
            Json(json!({ "models": models })).into_response()
        }
        "/api/show" => {
            let name = body["model"].as_str().unwrap_or_default();
            if name.starts_with("missing") {
                return not_found(name);
            }
            let mut capabilities = vec!["completion"];
            if takes_tools {
                capabilities.push("tools");
            }
            let info = json!({ "general.architecture": "fake", "fake.context_length": 131_072 });
            Json(json!({ "capabilities": capabilities, "model_info": info })).into_response()
        }
        "/api/generate" => not_found(body["model"].as_str().unwrap_or_default()),
        "/api/v0/models" => {
            let loaded = |name: &str| {
                json!({ "id": name, "object": "model", "type": "llm", "state": "loaded", "max_context_length": 131_072,
                    "loaded_context_length": 65_536 })
            };
            Json(json!({ "object": "list", "data": LISTED.map(loaded) })).into_response()
        }
        "/v1/models" => Json(json!({ "object": "list", "data": LISTED.map(listed) })).into_response(),
        _ => match path.strip_prefix("/v1/models/") {
            Some(name) if !name.starts_with("missing") => Json(listed(name)).into_response(),
            Some(name) => not_found(name),
            None => error(path, StatusCode::NOT_FOUND, "not_found_error", "no such path"),
        },
    }
}
