//! Answers requests: for a reply with the next step of the script, unless the server is one that
//! refuses it; about the server as its kind does.

use std::sync::Arc;
use std::time::Instant;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{Request as HttpRequest, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use super::conversation::{Protocol, Request, Said};
use super::script::{Fault, Step};
use super::trouble::Trouble;
use super::{Exchange, Inner, Shared, check, streaming, thinking, wire};

/// The only tool that scripts call although no request offers it: any other is a mistake of theirs.
const MEANT_TO_BE_UNKNOWN: &str = "workspace/no_such_tool";

pub(super) async fn serve(State(shared): State<Arc<Shared>>, request: HttpRequest<Body>) -> Response {
    let arrived = Instant::now();
    let (head, body) = request.into_parts();
    let path = head.uri.path().to_owned();
    let Ok(body) = to_bytes(body, usize::MAX).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    if let Some(key) = &shared.lock().key {
        let sent = ["authorization", "x-api-key"]
            .iter()
            .find_map(|name| head.headers.get(*name)?.to_str().ok())
            .unwrap_or_default();
        if sent.trim_start_matches("Bearer ") != key {
            let error = format!("Incorrect API key provided: {sent}");
            return wire::error(&path, StatusCode::UNAUTHORIZED, "invalid_api_key", &error);
        }
    }
    let json: Value = serde_json::from_slice(&body).unwrap_or_default();
    if shared.lock().memory.is_down {
        return wire::error(
            &path,
            StatusCode::SERVICE_UNAVAILABLE,
            "server_error",
            "nobody answers here",
        );
    }
    if let Some(answer) = shared.lock().memory.of_ollama(&path, &json) {
        return Json(answer).into_response();
    }
    let Some(protocol) = Protocol::of(&path) else {
        let (takes_tools, alone_with, of_lm_studio) = {
            let inner = shared.lock();
            (!inner.takes_no_tools, inner.alone_with, inner.of_lm_studio.clone())
        };
        for (version, entry) in of_lm_studio {
            if path == format!("/api/{version}/models") {
                let list = if version == "v0" { "data" } else { "models" };
                return Json(serde_json::json!({ list: [entry] })).into_response();
            }
        }
        if let Some(window) = alone_with.filter(|_| path == "/v1/models") {
            return wire::only_model(window);
        }
        return wire::about_the_server(&path, &json, takes_tools);
    };
    let mut request = Request::read(protocol, &head.headers, json);
    if let Some(tokens) = shared.lock().cuts_at {
        let start = request.seen.len().saturating_sub(tokens * 4 - 4);
        request.seen = request.seen.split_off(request.seen.ceil_char_boundary(start));
    }
    let answer = reply(&shared, &path, request).await;
    let answered = Instant::now();
    shared.lock().exchanges.push(Exchange { arrived, answered });
    answer
}

/// Returns the server's status and words if it does not take a request of this form.
fn refusal(inner: &Inner, request: &Request) -> Option<(StatusCode, String)> {
    let is_behind_results = |pair: &[Said]| matches!(pair, [Said::Result(..), Said::User(_)]);
    if request.protocol != Protocol::Messages && request.messages.windows(2).any(is_behind_results) {
        let refused = inner.refused_order.clone();
        if refused.is_some() {
            return refused;
        }
    }
    refused_part(inner, request).map(|words| (StatusCode::BAD_REQUEST, words))
}

/// Returns the server's words if it does not take a part of the request.
fn refused_part(inner: &Inner, request: &Request) -> Option<String> {
    if inner.takes_no_tools && !request.offered.is_empty() {
        return Some(format!("{} does not support tools", request.model));
    }
    if let Some(words) = thinking::refusal(inner.thinking, request) {
        return Some(words);
    }
    if request.protocol == Protocol::Messages && has_wordless_error(&request.body) {
        return Some("messages.2.content.0.tool_result: content cannot be empty if `is_error` is true".to_owned());
    }
    let mut fields = inner.refused_fields.iter();
    let refused = fields.find(|(field, _)| request.body.get(field).is_some());
    refused.map(|(_, words)| words.clone())
}

/// Tells whether a tool that failed has no words, which Anthropic refuses.
fn has_wordless_error(body: &Value) -> bool {
    let messages = body["messages"].as_array().into_iter().flatten();
    let mut blocks = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
    blocks.any(|block| block["is_error"] == true && block["content"].as_str().is_some_and(str::is_empty))
}

/// Returns how many tokens of a prompt are new, where only these are counted, and keeps it in the
/// cache.
fn uncached(inner: &mut Inner, prompt: &str) -> Option<u64> {
    let cached = inner.cached.as_mut()?;
    let pairs = prompt.bytes().zip(cached.bytes());
    let common = pairs.take_while(|(new, old)| new == old).count();
    prompt.clone_into(cached);
    Some((prompt.len() - common) as u64 / 4 + 1)
}

async fn reply(shared: &Arc<Shared>, path: &str, request: Request) -> Response {
    if request.model.starts_with("missing") {
        let error = format!("model '{}' not found", request.model);
        return wire::error(path, StatusCode::NOT_FOUND, "model_not_found", &error);
    }
    let step = {
        let mut inner = shared.lock();
        let Inner {
            violations,
            sessions,
            rules,
            thinking: thinks,
            ..
        } = &mut *inner;
        violations.extend(check::violations(&request, rules, sessions));
        violations.extend(thinking::violation(*thinks, &request));
        inner.requests.push(request.clone());
        if let Some((status, words)) = refusal(&inner, &request) {
            drop(inner);
            shared.ring();
            return wire::error(path, status, "invalid_request_error", &words);
        }
        let trouble = inner.troubles.pop_front();
        match &shared.responder {
            _ if trouble.is_some() => trouble.map(Trouble::step),
            Some(responder) => {
                drop(inner);
                Some(Step::answer(responder(&request)))
            }
            None => inner.scripts.next(&request),
        }
    };
    shared.ring();
    let Some(mut step) = step else {
        let error = format!(
            "the script has no step left for the conversation that begins with {:?}",
            request.first_user_message().chars().take(120).collect::<String>()
        );
        shared.lock().violations.insert(error.clone());
        return wire::error(path, StatusCode::INTERNAL_SERVER_ERROR, "server_error", &error);
    };
    if let Some(new) = uncached(&mut shared.lock(), &request.seen) {
        step.answer.prompt_tokens.get_or_insert(new);
    }
    if step.is_held {
        shared.hold().await;
    }
    if let Some(duration) = step.delay {
        tokio::time::sleep(duration).await;
    }
    let is_streamed = streaming::is_wanted(&request) && !shared.lock().streams_nothing;
    match step.fault {
        None => {
            let is_mistaken = |name: &str| !request.can_call(name) && name != MEANT_TO_BE_UNKNOWN;
            if let Some(unknown) = step.answer.calls.iter().find(|call| is_mistaken(&call.0)) {
                let error = format!("the script calls {}, which the request does not offer", unknown.0);
                shared.lock().violations.insert(error);
            }
            let mut body = wire::reply_body(&request, &step.answer);
            let thinks = shared.lock().thinking;
            thinking::add(thinks, &request, step.answer.thought.as_deref(), &mut body);
            if shared.lock().counts_nothing {
                wire::take_counts_out(&mut body);
            }
            if is_streamed {
                return streaming::respond(shared, &request, &body, step.middle);
            }
            Json(body).into_response()
        }
        Some(Fault::BreaksOff) if is_streamed => {
            let whole = wire::reply_body(&request, &step.answer);
            streaming::respond(shared, &request, &whole, Some(streaming::Middle::BreaksOff))
        }
        Some(Fault::Status(status)) => wire::error(path, status, "server_error", "The script fails here"),
        Some(Fault::RateLimited(seconds)) => {
            let code = StatusCode::TOO_MANY_REQUESTS;
            let mut response = wire::error(path, code, "rate_limit_exceeded", "Too many requests");
            if let Some(seconds) = seconds {
                response.headers_mut().insert("retry-after", seconds.into());
            }
            response
        }
        Some(Fault::LimitedBy(header, wait)) => {
            let code = StatusCode::TOO_MANY_REQUESTS;
            let response = wire::error(path, code, "rate_limit_exceeded", "Too many requests");
            ([(header, wait)], response).into_response()
        }
        Some(Fault::Refused(words)) => wire::error(path, StatusCode::BAD_REQUEST, "invalid_request_error", &words),
        Some(Fault::TooLong) => wire::too_long(&request),
        Some(Fault::BreaksOff) => wire::half_of(&wire::reply_body(&request, &step.answer)),
        Some(Fault::Raw(status, body)) => (status, body).into_response(),
    }
}
