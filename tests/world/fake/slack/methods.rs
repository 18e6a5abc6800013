//! The methods that bots call, and the files that they fetch.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::{APP_TOKEN, BOT, BOT_TOKEN, Fault, Message, Shared};
use crate::fake::server::Connection;

fn refuse(shared: &Shared, method: &str, error: &str) -> Response {
    shared.inner.lock().unwrap().refused.push(format!("{method}: {error}"));
    axum::Json(json!({ "ok": false, "error": error })).into_response()
}

pub(super) async fn ask(
    State(shared): State<Arc<Shared>>,
    Path(method): Path<String>,
    Query(arguments): Query<BTreeMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let fault = shared.fault(&method);
    if let Some(Fault::Limited(seconds)) = fault {
        return limited(seconds);
    }
    if token(&headers) != Some(BOT_TOKEN) {
        return refuse(&shared, &method, "invalid_auth");
    }
    let scopes = shared.inner.lock().unwrap().scopes.clone();
    if !scopes.split(',').any(|scope| scope.ends_with(":history")) {
        return refuse(&shared, &method, "missing_scope");
    }
    let channel = arguments.get("channel").cloned().unwrap_or_default();
    let messages: Vec<Message> = shared.inner.lock().unwrap().messages.clone();
    let with_metadata = arguments
        .get("include_all_metadata")
        .is_some_and(|value| value == "true");
    let shown = |message: &Message| {
        let mut shown = json!({
            "type": "message", "user": message.user, "ts": message.ts, "thread_ts": message.thread, "text": message.text,
        });
        if with_metadata && !message.metadata.is_null() {
            shown["metadata"] = message.metadata.clone();
        }
        shown
    };
    let found: Vec<Value> = match method.as_str() {
        "conversations.replies" => {
            let Some(ts) = arguments.get("ts") else {
                return refuse(&shared, &method, "invalid_arguments");
            };
            if !messages.iter().any(|message| message.ts == *ts) {
                return refuse(&shared, &method, "thread_not_found");
            }
            let belongs = |message: &&Message| {
                message.channel == channel && (message.ts == *ts || message.thread.as_ref() == Some(ts))
            };
            messages.iter().filter(belongs).map(shown).collect()
        }
        "conversations.history" => {
            let belongs = |message: &&Message| message.channel == channel && message.thread.is_none();
            messages.iter().rev().filter(belongs).map(shown).collect()
        }
        _ => return refuse(&shared, &method, "unknown_method"),
    };
    axum::Json(json!({ "ok": true, "messages": found, "has_more": false, "response_metadata": { "next_cursor": "" } }))
        .into_response()
}

pub(super) async fn call(
    State(shared): State<Arc<Shared>>,
    Path(method): Path<String>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let fault = shared.fault(&method);
    match fault {
        Some(Fault::Limited(seconds)) => return limited(seconds),
        Some(Fault::Broken) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        Some(Fault::Refused(error)) => return refuse(&shared, &method, error),
        Some(Fault::Held) => return hold(&shared).await,
        _ => {}
    }
    let wanted = if method == "apps.connections.open" {
        APP_TOKEN
    } else {
        BOT_TOKEN
    };
    match token(&headers) {
        Some(token) if token == wanted => {}
        Some(APP_TOKEN | BOT_TOKEN) => return refuse(&shared, &method, "not_allowed_token_type"),
        _ => return refuse(&shared, &method, "invalid_auth"),
    }
    let Some(arguments) = read(&headers, &body) else {
        return refuse(&shared, &method, "invalid_json");
    };
    let answer = match method.as_str() {
        "auth.test" => {
            Ok(json!({ "ok": true, "user_id": BOT, "user": "agent", "team_id": "T0000001", "team": "Acme" }))
        }
        "apps.connections.open" => {
            Ok(json!({ "ok": true, "url": format!("ws://{}/link/?ticket=t&app_id=A", shared.origin) }))
        }
        "chat.postMessage" => post_message(&shared, &arguments),
        "chat.update" => update(&shared, &arguments),
        _ => Err("unknown_method"),
    };
    match fault {
        Some(Fault::DoneAndCut) => {
            connection.cut();
        }
        Some(Fault::DoneAndHeld) => return hold(&shared).await,
        _ => {}
    }
    match answer {
        Ok(answer) => {
            let scopes = shared.inner.lock().unwrap().scopes.clone();
            ([("x-oauth-scopes", scopes)], axum::Json(answer)).into_response()
        }
        Err(error) => refuse(&shared, &method, error),
    }
}

/// Reads arguments in either form; in a form, lists and objects are texts of JSON.
fn read(headers: &HeaderMap, body: &[u8]) -> Option<Value> {
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok());
    if !kind.is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded")) {
        return serde_json::from_slice(body).ok();
    }
    let fields = url::form_urlencoded::parse(body).map(|(name, value)| {
        let value = match name.as_ref() {
            "blocks" | "metadata" => serde_json::from_str(&value).unwrap_or_default(),
            _ => Value::String(value.into_owned()),
        };
        (name.into_owned(), value)
    });
    Some(Value::Object(fields.collect()))
}

async fn hold(shared: &Shared) -> Response {
    shared.ring();
    std::future::pending().await
}

/// Serves a file to the bot; whoever has no token is shown the page to sign in, as a good answer.
pub(super) async fn file(State(shared): State<Arc<Shared>>, Path(name): Path<String>, headers: HeaderMap) -> Response {
    if token(&headers) != Some(BOT_TOKEN) {
        return ([("content-type", "text/html")], "<!DOCTYPE html><title>Sign in</title>").into_response();
    }
    let mut inner = shared.inner.lock().unwrap();
    let Some((kind, bytes)) = inner.files.get(&name).cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    inner.fetched.push(name);
    ([("content-type", kind)], bytes).into_response()
}

fn post_message(shared: &Shared, arguments: &Value) -> Result<Value, &'static str> {
    check(arguments)?;
    let channel = arguments["channel"].as_str().ok_or("channel_not_found")?;
    let metadata = &arguments["metadata"];
    if !metadata.is_null() && (!metadata["event_type"].is_string() || !metadata["event_payload"].is_object()) {
        return Err("metadata_must_be_sent_from_app");
    }
    let text = arguments["text"].as_str().unwrap_or_default();
    let thread = arguments["thread_ts"].as_str();
    let ts = shared.keep(
        BOT,
        channel,
        thread,
        text,
        arguments["blocks"].clone(),
        metadata.clone(),
    );
    Ok(json!({ "ok": true, "channel": channel, "ts": ts, "message": { "ts": ts, "text": text, "user": BOT } }))
}

fn update(shared: &Shared, arguments: &Value) -> Result<Value, &'static str> {
    check(arguments)?;
    let mut inner = shared.inner.lock().unwrap();
    let ts = arguments["ts"].as_str().ok_or("invalid_arguments")?;
    let message = inner
        .messages
        .iter_mut()
        .find(|message| message.ts == ts)
        .ok_or("message_not_found")?;
    if message.user != BOT {
        return Err("cant_update_message");
    }
    arguments["text"]
        .as_str()
        .unwrap_or_default()
        .clone_into(&mut message.text);
    message.blocks = arguments["blocks"].clone();
    message.edits += 1;
    drop(inner);
    shared.ring();
    Ok(json!({ "ok": true, "channel": arguments["channel"], "ts": ts, "text": arguments["text"] }))
}

/// Checks what both methods take, within Slack's limits.
fn check(arguments: &Value) -> Result<(), &'static str> {
    let text = arguments["text"].as_str().unwrap_or_default();
    if text.is_empty() && arguments["blocks"].is_null() {
        return Err("no_text");
    }
    if text.chars().count() > 40_000 {
        return Err("msg_too_long");
    }
    for block in arguments["blocks"].as_array().into_iter().flatten() {
        let section = block["text"]["text"].as_str().map_or(0, |text| text.chars().count());
        let buttons = block["elements"].as_array().into_iter().flatten();
        let is_good = |button: &Value| {
            let length = |value: &Value| value.as_str().map_or(0, |text| text.chars().count());
            (1..=75).contains(&length(&button["text"]["text"]))
                && length(&button["value"]) <= 2_000
                && (1..=255).contains(&length(&button["action_id"]))
        };
        if section > 3_000 || (block["type"] == "section" && section == 0) || !buttons.into_iter().all(is_good) {
            return Err("invalid_blocks");
        }
    }
    Ok(())
}

fn token(headers: &HeaderMap) -> Option<&str> {
    headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer ")
}

fn limited(seconds: u64) -> Response {
    let body = axum::Json(json!({ "ok": false, "error": "ratelimited" }));
    (
        StatusCode::TOO_MANY_REQUESTS,
        [("retry-after", seconds.to_string())],
        body,
    )
        .into_response()
}
