//! A LINE: the Messaging API's calls that are used, and people who write.
//!
//! It behaves as LINE's documentation says: a reply token is good for one answer, a push is taken
//! once under its retry key (409 after that), texts have at most 5,000 units of UTF-16, five
//! messages make a request, pushes of a month are counted and answers are free, and what is sent to
//! a webhook is signed with the channel's secret.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::fake::server::{Connection, Server, loopback};

pub const CHANNEL_SECRET: &str = "8c570fa6dd201bb328f1c1eac23a96d8";
pub const ACCESS_TOKEN: &str = "channel-access-token-of-the-test-0123456789";

const PATIENCE: Duration = Duration::from_mins(3);

/// A text that the bot sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub to: String,
    pub text: String,
    pub is_reply: bool,
}

/// A fault in one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call is refused, to be made again after so many seconds.
    Limited(u64),
    /// The call is carried out, and the connection breaks off before the answer.
    DoneAndCut,
    /// The call is carried out, and the answer never comes.
    DoneAndHeld,
    /// The call is not carried out, and the answer never comes.
    Held,
    /// The call is not carried out: the token is not good.
    LoggedOut,
}

#[derive(Default)]
struct Inner {
    sent: Vec<Sent>,
    /// Reply tokens that were not used, with the chats they belong to.
    tokens: BTreeMap<String, String>,
    keys: BTreeSet<String>,
    faults: Vec<(String, Fault)>,
    refused: Vec<String>,
    events: u64,
    held: usize,
    /// The bodies of what was sent, each behind the call's name.
    bodies: Vec<(String, Value)>,
    /// Pictures by the names of their messages.
    pictures: BTreeMap<String, Vec<u8>>,
    /// The address that LINE delivers to, and whether that is turned on.
    webhook: Option<(String, bool)>,
    /// Whether the month's pushes are used up.
    is_used_up: bool,
}

struct Shared {
    inner: Mutex<Inner>,
    bell: watch::Sender<u64>,
}

/// A running LINE.
pub struct Line {
    shared: Arc<Shared>,
    origin: String,
    _server: Server,
}

impl Line {
    pub async fn start() -> Self {
        let listener = loopback().await;
        let origin = format!("http://{}", listener.local_addr().unwrap());
        let shared = Arc::new(Shared {
            inner: Mutex::default(),
            bell: watch::Sender::new(0),
        });
        let router = Router::new()
            .route("/v2/bot/message/{what}", post(send))
            .route("/v2/bot/message/{what}/content", get(content))
            .route("/v2/bot/info", get(info))
            .route("/v2/bot/channel/webhook/endpoint", get(webhook))
            .with_state(Arc::clone(&shared));
        Self {
            _server: Server::start(listener, router),
            origin,
            shared,
        }
    }

    /// Sets the webhook, as somebody does on the channel's page.
    pub fn delivers_to(&self, address: &str, is_on: bool) {
        self.lock().webhook = Some((address.to_owned(), is_on));
    }

    /// Returns the section of the configuration.
    pub fn section(&self, users: &Value) -> Value {
        json!({
            "api_url": self.origin, "data_url": self.origin, "channel_secret": CHANNEL_SECRET, "channel_access_token": ACCESS_TOKEN,
            "allowed_users": users,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.shared.inner.lock().unwrap()
    }

    /// Returns the address.
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Returns what LINE sends when somebody writes to the bot: the body and its signature.
    pub fn writes(&self, user: &str, text: &str) -> (String, String) {
        self.tells(user, &json!({ "type": "text", "quoteToken": "q", "text": text }))
    }

    /// Returns what LINE sends when somebody sends a picture to the bot, likewise.
    pub fn sends_picture(&self, user: &str, bytes: &[u8]) -> (String, String) {
        let number = self.lock().events + 1;
        self.lock().pictures.insert(number.to_string(), bytes.to_vec());
        let provider = json!({ "type": "line" });
        self.tells(
            user,
            &json!({ "type": "image", "quoteToken": "q", "contentProvider": provider }),
        )
    }

    fn tells(&self, user: &str, message: &Value) -> (String, String) {
        let mut inner = self.lock();
        inner.events += 1;
        let number = inner.events;
        let token = format!("reply-token-{number}");
        inner.tokens.insert(token.clone(), user.to_owned());
        let mut event = json!({
            "type": "message", "mode": "active", "timestamp": chrono::Utc::now().timestamp_millis(),
            "source": { "type": "user", "userId": user }, "webhookEventId": format!("01HEVENT{number:018}"),
            "deliveryContext": { "isRedelivery": false }, "replyToken": token,
            "message": message,
        });
        event["message"]["id"] = json!(number.to_string());
        let body = json!({ "destination": "U00000000000000000000000000000000", "events": [event] }).to_string();
        let signature = signature(&body);
        (body, signature)
    }

    /// Makes the next call of this name go wrong.
    pub fn fails_next(&self, what: &str, fault: Fault) {
        self.lock().faults.push((what.to_owned(), fault));
    }

    /// Refuses all pushes from now on, until the month is over. Answers are free.
    pub fn uses_up_the_month(&self) {
        self.lock().is_used_up = true;
    }

    /// Makes all reply tokens worthless, as a minute does.
    pub fn tokens_end(&self) {
        self.lock().tokens.clear();
    }

    pub fn sent(&self) -> Vec<Sent> {
        self.lock().sent.clone()
    }

    pub fn texts(&self) -> Vec<String> {
        self.sent().into_iter().map(|sent| sent.text).collect()
    }

    /// Returns how many calls were held.
    pub fn held(&self) -> usize {
        self.lock().held
    }

    /// Returns the bodies of what was sent, each behind the call's name.
    pub fn bodies(&self) -> Vec<(String, Value)> {
        self.lock().bodies.clone()
    }

    /// Waits until a call is held.
    pub async fn until_held(&self) {
        let mut bell = self.shared.bell.subscribe();
        while self.held() == 0 {
            let _ = tokio::time::timeout(Duration::from_millis(200), bell.changed()).await;
        }
    }

    pub fn refused(&self) -> Vec<String> {
        self.lock().refused.clone()
    }

    /// Waits until the bot has sent something with these words, and returns it.
    pub async fn until_said(&self, words: &str) -> Sent {
        let mut bell = self.shared.bell.subscribe();
        let waiting = async {
            loop {
                if let Some(sent) = self.sent().into_iter().rev().find(|sent| sent.text.contains(words)) {
                    return sent;
                }
                let _ = tokio::time::timeout(Duration::from_millis(200), bell.changed()).await;
            }
        };
        let came = tokio::time::timeout(PATIENCE, waiting).await;
        came.unwrap_or_else(|_| panic!("waited in vain for {words:?}; in LINE: {:#?}", self.texts()))
    }
}

/// Signs a body as LINE does.
pub fn signature(body: &str) -> String {
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(CHANNEL_SECRET.as_bytes()).unwrap();
    mac.update(body.as_bytes());
    STANDARD.encode(mac.finalize().into_bytes())
}

async fn info(headers: HeaderMap) -> Response {
    if !is_authorised(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    axum::Json(json!({ "userId": "U1", "basicId": "@agent", "displayName": "Agent", "chatMode": "bot", "markAsReadMode": "auto" }))
        .into_response()
}

async fn webhook(State(shared): State<Arc<Shared>>, headers: HeaderMap) -> Response {
    if !is_authorised(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match shared.inner.lock().unwrap().webhook.clone() {
        Some((address, is_on)) => axum::Json(json!({ "endpoint": address, "active": is_on })).into_response(),
        None => (StatusCode::NOT_FOUND, axum::Json(json!({ "message": "Not found" }))).into_response(),
    }
}

fn is_authorised(headers: &HeaderMap) -> bool {
    headers
        .get("authorization")
        .is_some_and(|value| value == format!("Bearer {ACCESS_TOKEN}").as_str())
}

async fn send(
    State(shared): State<Arc<Shared>>,
    Path(what): Path<String>,
    ConnectInfo(connection): ConnectInfo<Connection>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let fault = {
        let mut inner = shared.inner.lock().unwrap();
        let place = inner.faults.iter().position(|(name, _)| *name == what);
        place.map(|place| inner.faults.remove(place).1)
    };
    if let Some(Fault::Limited(seconds)) = fault {
        let body = axum::Json(json!({ "message": "The API rate limit has been exceeded. Try again later." }));
        return (
            StatusCode::TOO_MANY_REQUESTS,
            [("retry-after", seconds.to_string())],
            body,
        )
            .into_response();
    }
    if fault == Some(Fault::Held) {
        return hold(&shared).await;
    }
    if fault == Some(Fault::LoggedOut) {
        let body = axum::Json(json!({ "message": "Authentication failed" }));
        return (StatusCode::UNAUTHORIZED, body).into_response();
    }
    if let Ok(body) = serde_json::from_slice(&body) {
        shared.inner.lock().unwrap().bodies.push((what.clone(), body));
    }
    let answer = take(&shared, &what, &headers, &body);
    match fault {
        Some(Fault::DoneAndCut) => connection.cut(),
        Some(Fault::DoneAndHeld) => return hold(&shared).await,
        _ => {}
    }
    shared.bell.send_modify(|rung| *rung += 1);
    match answer {
        Ok(()) => axum::Json(json!({ "sentMessages": [{ "id": "1", "quoteToken": "q" }] })).into_response(),
        Err((status, message)) => {
            if status != StatusCode::CONFLICT {
                let mut inner = shared.inner.lock().unwrap();
                inner.refused.push(format!("{what}: {message}"));
            }
            (status, axum::Json(json!({ "message": message }))).into_response()
        }
    }
}

async fn hold(shared: &Shared) -> Response {
    shared.inner.lock().unwrap().held += 1;
    shared.bell.send_modify(|rung| *rung += 1);
    std::future::pending().await
}

async fn content(State(shared): State<Arc<Shared>>, Path(id): Path<String>, headers: HeaderMap) -> Response {
    if !is_authorised(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    match shared.inner.lock().unwrap().pictures.get(&id) {
        // LINE tells one kind whatever it is.
        Some(bytes) => ([("content-type", "image/jpeg")], bytes.clone()).into_response(),
        None => (StatusCode::NOT_FOUND, axum::Json(json!({ "message": "Not found" }))).into_response(),
    }
}

type Refusal = (StatusCode, &'static str);

fn take(shared: &Shared, what: &str, headers: &HeaderMap, body: &[u8]) -> Result<(), Refusal> {
    if !is_authorised(headers) {
        return Err((StatusCode::UNAUTHORIZED, "Authentication failed"));
    }
    let bad = |message| (StatusCode::BAD_REQUEST, message);
    let request: Value =
        serde_json::from_slice(body).map_err(|_| bad("The request body could not be parsed as JSON"))?;
    let messages = request["messages"].as_array().ok_or(bad("messages"))?;
    let mut texts = Vec::new();
    for message in messages {
        let text = message["text"]
            .as_str()
            .filter(|_| message["type"] == "text")
            .ok_or(bad("text"))?;
        if text.is_empty() || text.encode_utf16().count() > 5_000 {
            return Err(bad("Length must be between 0 and 5000"));
        }
        texts.push(text.to_owned());
    }
    if !(1..=5).contains(&texts.len()) {
        return Err(bad("Size must be between 1 and 5"));
    }
    let mut inner = shared.inner.lock().unwrap();
    let (to, is_reply) = match what {
        "reply" => {
            let token = request["replyToken"].as_str().ok_or(bad("replyToken"))?;
            (inner.tokens.remove(token).ok_or(bad("Invalid reply token"))?, true)
        }
        "push" if inner.is_used_up => {
            return Err((StatusCode::TOO_MANY_REQUESTS, "You have reached your monthly limit."));
        }
        "push" => {
            let to = request["to"].as_str().ok_or(bad("to"))?.to_owned();
            if let Some(key) = headers.get("x-line-retry-key") {
                let key = key.to_str().unwrap_or_default();
                uuid::Uuid::parse_str(key).map_err(|_| bad("Invalid retry key"))?;
                if !inner.keys.insert(key.to_owned()) {
                    return Err((StatusCode::CONFLICT, "The retry key is already accepted"));
                }
            }
            (to, false)
        }
        _ => return Err((StatusCode::NOT_FOUND, "Not found")),
    };
    inner.sent.extend(texts.into_iter().map(|text| Sent {
        to: to.clone(),
        text,
        is_reply,
    }));
    Ok(())
}
