//! A Slack: the methods that bots use, Socket Mode, and people who write and press buttons.
//!
//! It behaves as Slack's documentation says: errors are in the body of a 200, methods that read take
//! their arguments in the query alone, what is not acknowledged within three seconds is sent again
//! over any connection, a message may be told of as `message` and as `app_mention`, and a limit is a
//! 429 with `Retry-After`. Its wire types are its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, Query, Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::{SinkExt, StreamExt};
use hmac::{Hmac, Mac};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use crate::fake::server::{Connection, Server, loopback};

pub const APP_TOKEN: &str = "xapp-1-A0000000-0123456789-app-token-of-the-test";
pub const BOT_TOKEN: &str = "xoxb-0123456789-bot-token-of-the-test";
pub const SIGNING_SECRET: &str = "a-signing-secret-of-the-test";
/// The user of the bot.
pub const BOT: &str = "UBOT0000";
/// A channel that the bot listens in.
pub const CHANNEL: &str = "C0000001";

const PATIENCE: Duration = Duration::from_mins(3);
/// How long Slack waits for an acknowledgement.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(3);

/// A message in a channel.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub ts: String,
    pub channel: String,
    pub thread: Option<String>,
    pub user: String,
    pub text: String,
    pub blocks: Value,
    pub metadata: Value,
    pub edits: usize,
}

/// What goes wrong with one call of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is refused, to be asked again after so many seconds.
    Limited(u64),
    /// It is done, and the connection breaks off before the answer.
    DoneAndCut,
    /// It is done, and the answer never comes.
    DoneAndHeld,
    /// It is not done, and the answer is a 500.
    Broken,
    /// It is not done, and the answer never comes.
    Held,
}

#[derive(Default)]
struct Inner {
    messages: Vec<Message>,
    clock: u64,
    envelopes: u64,
    /// What was sent and not acknowledged, with the number of times that it was sent.
    open: BTreeMap<String, (Value, u32)>,
    sockets: BTreeMap<u64, mpsc::UnboundedSender<Frame>>,
    connections: u64,
    faults: Vec<(String, Fault)>,
    /// How many texts are taken before one is held, and whether that one is done.
    hold: Option<(usize, bool)>,
    held: usize,
    refused: Vec<String>,
    /// Files by their names: the kind that Slack tells, and the bytes.
    files: BTreeMap<String, (String, Vec<u8>)>,
    fetched: Vec<String>,
    /// The scopes of the bot's token, as Slack tells them.
    scopes: String,
}

struct Shared {
    inner: Mutex<Inner>,
    bell: watch::Sender<u64>,
    origin: String,
}

/// A running Slack.
pub struct Slack {
    shared: Arc<Shared>,
    _server: Server,
}

impl Slack {
    pub async fn start() -> Self {
        let listener = loopback().await;
        let origin = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
        let shared = Arc::new(Shared {
            inner: Mutex::default(),
            bell: watch::Sender::new(0),
            origin,
        });
        let router = Router::new()
            .route("/api/{method}", post(call).get(ask))
            .route("/link/", get(link))
            .route("/files/{name}", get(file))
            .with_state(Arc::clone(&shared));
        let slack = Self {
            _server: Server::start(listener, router),
            shared,
        };
        slack.grants("app_mentions:read,channels:history,im:history,chat:write,files:read");
        slack
    }

    /// The bot's token has these scopes from now on.
    pub fn grants(&self, scopes: &str) {
        scopes.clone_into(&mut self.lock().scopes);
    }

    /// Returns the section of the configuration.
    pub fn section(&self, users: &Value) -> Value {
        json!({
            "api_url": format!("http://{}/api", self.shared.origin),
            "app_token": APP_TOKEN,
            "bot_token": BOT_TOKEN,
            "channels": [CHANNEL],
            "allowed_users": users,
        })
    }

    /// Returns the address of the Web API, as SDKs want it.
    pub fn api_url(&self) -> String {
        format!("http://{}/api/", self.shared.origin)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.inner.lock().unwrap()
    }

    /// Somebody mentions the bot in the channel; returns the message's name.
    pub fn mentions(&self, user: &str, text: &str) -> String {
        self.writes(user, CHANNEL, None, &format!("<@{BOT}> {text}"))
    }

    /// Returns what Slack sends over HTTP when somebody mentions the bot.
    pub fn mentions_by_request(&self, user: &str, text: &str) -> String {
        let text = format!("<@{BOT}> {text}");
        let ts = self.shared.keep(user, CHANNEL, None, &text, Value::Null, Value::Null);
        let event = json!({
            "type": "app_mention", "user": user, "channel": CHANNEL, "ts": ts, "event_ts": ts, "text": text,
        });
        callback(&event, &ts, "app_mention").to_string()
    }

    /// Somebody writes below a message.
    pub fn replies(&self, user: &str, thread: &str, text: &str) -> String {
        self.writes(user, CHANNEL, Some(thread), text)
    }

    /// Somebody writes.
    pub fn writes(&self, user: &str, channel: &str, thread: Option<&str>, text: &str) -> String {
        let ts = self.shared.keep(user, channel, thread, text, Value::Null, Value::Null);
        let mut event = json!({
            "type": "message", "user": user, "channel": channel, "ts": ts, "event_ts": ts, "team": "T0000001",
            "text": text.replace('&', "&amp;"), "client_msg_id": format!("c-{ts}"),
            "channel_type": if channel.starts_with('D') { "im" } else { "channel" },
        });
        if let Some(thread) = thread {
            event["thread_ts"] = json!(thread);
        }
        self.shared.tell("events_api", &callback(&event, &ts, "message"));
        if text.contains(&format!("<@{BOT}>")) {
            event["type"] = json!("app_mention");
            self.shared.tell("events_api", &callback(&event, &ts, "app_mention"));
        }
        ts
    }

    /// Somebody mentions the bot and sends a file, of which Slack tells this name and kind.
    pub fn sends_file(&self, user: &str, text: &str, name: &str, kind: &str, bytes: &[u8]) -> String {
        let text = format!("<@{BOT}> {text}");
        let ts = self.shared.keep(user, CHANNEL, None, &text, Value::Null, Value::Null);
        let place = format!("{}-{name}", ts.replace('.', "-"));
        let url = format!("http://{}/files/{place}", self.shared.origin);
        self.lock().files.insert(place, (kind.to_owned(), bytes.to_vec()));
        let file = json!({
            "id": "F0000001", "name": name, "title": name, "mimetype": kind, "filetype": "png", "mode": "hosted",
            "is_external": false, "size": bytes.len(), "url_private": url, "url_private_download": url,
        });
        let event = json!({
            "type": "message", "subtype": "file_share", "user": user, "channel": CHANNEL, "channel_type": "channel",
            "ts": ts, "event_ts": ts, "text": text, "files": [file],
        });
        self.shared.tell("events_api", &callback(&event, &ts, "message"));
        ts
    }

    /// Returns the names of the files that the bot fetched.
    pub fn fetched(&self) -> Vec<String> {
        self.lock().fetched.clone()
    }

    /// Has a text that is said or changed, after so many others, never answered; `is_done` tells
    /// whether it is done all the same.
    pub fn holds(&self, spared: usize, is_done: bool) {
        self.lock().hold = Some((spared, is_done));
    }

    /// Returns how many texts were held.
    pub fn held(&self) -> usize {
        self.lock().held
    }

    /// Somebody presses the button of this place below a message.
    pub fn presses(&self, user: &str, message: &Message, place: usize) {
        let button = buttons(message)[place].clone();
        let at = self.shared.now();
        let payload = json!({
            "type": "block_actions", "user": { "id": user, "username": "somebody", "team_id": "T0000001" },
            "api_app_id": "A0000001", "token": "t", "trigger_id": "1.2.3", "team": { "id": "T0000001" },
            "container": {
                "type": "message", "message_ts": message.ts, "channel_id": message.channel, "is_ephemeral": false,
                "thread_ts": message.thread,
            },
            "channel": { "id": message.channel, "name": "general" },
            "message": { "type": "message", "user": BOT, "ts": message.ts, "thread_ts": message.thread, "text": message.text },
            "response_url": "https://hooks.slack.invalid/actions",
            "actions": [{
                "action_id": button["action_id"], "block_id": "b", "text": button["text"], "value": button["value"],
                "type": "button", "action_ts": at,
            }],
        });
        self.shared.tell("interactive", &payload);
    }

    /// Sends what was acknowledged, too, once more, as Slack does where an acknowledgement was lost.
    pub fn repeats_all(&self) {
        let messages: Vec<Message> = self
            .messages()
            .into_iter()
            .filter(|message| message.user != BOT)
            .collect();
        for message in messages {
            let event = json!({
                "type": "message", "user": message.user, "channel": message.channel, "ts": message.ts, "text": message.text,
                "channel_type": "channel", "thread_ts": message.thread,
            });
            self.shared
                .tell("events_api", &callback(&event, &message.ts, "message"));
        }
    }

    /// Closes all sockets without a word.
    pub fn cuts_sockets(&self) {
        self.lock().sockets.clear();
    }

    /// Asks for a new connection, as Slack does every few hours.
    pub fn refreshes(&self) {
        let frame = json!({ "type": "disconnect", "reason": "refresh_requested", "debug_info": { "host": "h" } });
        for socket in self.lock().sockets.values() {
            let _ = socket.send(Frame::text(frame.to_string()));
        }
    }

    /// Makes the next call of a method go wrong.
    pub fn fails_next(&self, method: &str, fault: Fault) {
        self.lock().faults.push((method.to_owned(), fault));
    }

    pub fn messages(&self) -> Vec<Message> {
        self.lock().messages.clone()
    }

    /// Returns what the bot said, in order.
    pub fn said(&self) -> Vec<Message> {
        let mut messages = self.messages();
        messages.retain(|message| message.user == BOT);
        messages
    }

    pub fn texts(&self) -> Vec<String> {
        self.said().into_iter().map(|message| message.text).collect()
    }

    /// Returns the errors that were answered.
    pub fn refused(&self) -> Vec<String> {
        self.lock().refused.clone()
    }

    pub fn has_socket(&self) -> bool {
        !self.lock().sockets.is_empty()
    }

    /// Tells whether all that was told was acknowledged.
    pub fn is_heard(&self) -> bool {
        self.lock().open.is_empty()
    }

    /// Waits until something is so.
    pub async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        let mut bell = self.shared.bell.subscribe();
        let waiting = async {
            while !is_so(self) {
                // Sockets come and go without a bell.
                let _ = tokio::time::timeout(Duration::from_millis(200), bell.changed()).await;
            }
        };
        let came = tokio::time::timeout(PATIENCE, waiting).await;
        assert!(
            came.is_ok(),
            "waited in vain; in Slack: {:#?}\n{:?}",
            self.texts(),
            self.refused()
        );
    }

    /// Waits until something happens, or for a moment.
    pub async fn until_news(&self) {
        let mut bell = self.shared.bell.subscribe();
        let _ = tokio::time::timeout(Duration::from_millis(200), bell.changed()).await;
    }

    /// Waits until the bot has said something with these words, and returns it.
    pub async fn until_said(&self, words: &str) -> Message {
        self.until(|slack| slack.texts().iter().any(|text| text.contains(words)))
            .await;
        self.said()
            .into_iter()
            .rev()
            .find(|message| message.text.contains(words))
            .unwrap()
    }
}

/// Signs a body as Slack does.
pub fn signature(body: &str, at: i64) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(SIGNING_SECRET.as_bytes()).unwrap();
    mac.update(format!("v0:{at}:{body}").as_bytes());
    let digest = mac.finalize().into_bytes();
    let hex: Vec<String> = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v0={}", hex.concat())
}

/// Returns the buttons of a message.
pub fn buttons(message: &Message) -> Vec<Value> {
    let blocks = message.blocks.as_array().into_iter().flatten();
    let elements = blocks
        .filter(|block| block["type"] == "actions")
        .filter_map(|block| block["elements"].as_array());
    elements.flatten().cloned().collect()
}

fn callback(event: &Value, ts: &str, kind: &str) -> Value {
    json!({
        "type": "event_callback", "token": "t", "team_id": "T0000001", "api_app_id": "A0000001", "event": event,
        "event_id": format!("Ev{kind}{ts}"), "event_time": 1_700_000_000, "is_ext_shared_channel": false,
        "authorizations": [{ "team_id": "T0000001", "user_id": BOT, "is_bot": true }],
    })
}

impl Shared {
    fn ring(&self) {
        self.bell.send_modify(|rung| *rung += 1);
    }

    fn now(&self) -> String {
        let mut inner = self.inner.lock().unwrap();
        inner.clock += 1;
        format!("17000{:05}.{:06}", inner.clock, inner.clock)
    }

    fn keep(
        &self,
        user: &str,
        channel: &str,
        thread: Option<&str>,
        text: &str,
        blocks: Value,
        metadata: Value,
    ) -> String {
        let ts = self.now();
        let message = Message {
            ts: ts.clone(),
            channel: channel.to_owned(),
            thread: thread.map(str::to_owned),
            user: user.to_owned(),
            text: text.to_owned(),
            blocks,
            metadata,
            edits: 0,
        };
        self.inner.lock().unwrap().messages.push(message);
        self.ring();
        ts
    }

    /// Sends an envelope over some connection, and keeps it until it is acknowledged.
    fn tell(&self, kind: &str, payload: &Value) {
        let mut inner = self.inner.lock().unwrap();
        inner.envelopes += 1;
        let id = format!("envelope-{}", inner.envelopes);
        let envelope = json!({
            "envelope_id": id, "type": kind, "accepts_response_payload": kind == "interactive", "payload": payload,
        });
        inner.open.insert(id.clone(), (envelope.clone(), 1));
        send(&inner, &envelope);
    }

    fn fault(&self, method: &str) -> Option<Fault> {
        let mut inner = self.inner.lock().unwrap();
        if let Some((spared, is_done)) = inner.hold
            && ["chat.postMessage", "chat.update"].contains(&method)
        {
            inner.hold = spared.checked_sub(1).map(|spared| (spared, is_done));
            if spared == 0 {
                return Some(if is_done { Fault::DoneAndHeld } else { Fault::Held });
            }
        }
        let place = inner.faults.iter().position(|(name, _)| name == method)?;
        Some(inner.faults.remove(place).1)
    }
}

fn send(inner: &Inner, envelope: &Value) {
    // Any of the connections, as Slack does.
    if let Some(socket) = inner.sockets.values().last() {
        let _ = socket.send(Frame::text(envelope.to_string()));
    }
}

async fn link(State(shared): State<Arc<Shared>>, mut request: Request) -> Response {
    let key = request.headers().get("sec-websocket-key").cloned();
    let has_ticket = request.uri().query().is_some_and(|query| query.contains("ticket="));
    let Some(key) = key.filter(|_| has_ticket) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        if let Ok(upgraded) = upgrade.await {
            let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
            talk(shared, socket).await;
        }
    });
    Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-accept", derive_accept_key(key.as_bytes()))
        .body(axum::body::Body::empty())
        .unwrap()
}

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

async fn talk(shared: Arc<Shared>, mut socket: Socket) {
    let (sender, mut frames) = mpsc::unbounded_channel();
    let number = {
        let mut inner = shared.inner.lock().unwrap();
        inner.connections += 1;
        let hello = json!({
            "type": "hello", "num_connections": inner.sockets.len() + 1, "connection_info": { "app_id": "A0000001" },
            "debug_info": { "host": "applink", "approximate_connection_time": 18060 },
        });
        let _ = sender.send(Frame::text(hello.to_string()));
        let number = inner.connections;
        inner.sockets.insert(number, sender);
        number
    };
    shared.ring();
    let mut again = tokio::time::interval(ACKNOWLEDGED_WITHIN);
    // Its first tick is at once: what was not acknowledged before comes over the new connection.
    loop {
        tokio::select! {
            frame = frames.recv() => match frame {
                Some(frame) => if socket.send(frame).await.is_err() { break },
                None => break,
            },
            frame = socket.next() => match frame {
                Some(Ok(Frame::Text(text))) => acknowledge(&shared, text.as_str()),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => break,
            },
            _ = again.tick() => {
                let mut inner = shared.inner.lock().unwrap();
                let mut due = Vec::new();
                for (envelope, times) in inner.open.values_mut() {
                    *times += 1;
                    envelope["retry_attempt"] = json!(*times - 1);
                    envelope["retry_reason"] = json!("timeout");
                    due.push(envelope.clone());
                }
                for envelope in due {
                    send(&inner, &envelope);
                }
            }
        }
    }
    shared.inner.lock().unwrap().sockets.remove(&number);
}

fn acknowledge(shared: &Shared, text: &str) {
    let answer: Value = serde_json::from_str(text).expect("a client sends JSON");
    let id = answer["envelope_id"].as_str().expect("a client acknowledges envelopes");
    let mut inner = shared.inner.lock().unwrap();
    inner.open.remove(id);
    drop(inner);
    shared.ring();
}

fn refuse(shared: &Shared, method: &str, error: &str) -> Response {
    shared.inner.lock().unwrap().refused.push(format!("{method}: {error}"));
    axum::Json(json!({ "ok": false, "error": error })).into_response()
}

async fn ask(
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

async fn call(
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
    shared.inner.lock().unwrap().held += 1;
    shared.ring();
    std::future::pending().await
}

/// Serves a file to the bot; whoever has no token is shown the page to sign in, as a good answer.
async fn file(State(shared): State<Arc<Shared>>, Path(name): Path<String>, headers: HeaderMap) -> Response {
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
