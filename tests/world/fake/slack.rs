//! A Slack: the methods that bots use, Socket Mode, and people who write and press buttons.
//!
//! It behaves as Slack's documentation says: errors are in the body of a 200, methods that read take
//! their arguments in the query alone, what is not acknowledged within three seconds is sent again
//! over any connection, a message may be told of as `message` and as `app_mention`, and a limit is a
//! 429 with `Retry-After`. Its wire types are its own.

mod methods;
mod socket_mode;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use hmac::{Hmac, Mac};
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::tungstenite::Message as Frame;

use crate::fake::server::{Server, loopback};

pub const APP_TOKEN: &str = "xapp-1-A0000000-0123456789-app-token-of-the-test";
pub const BOT_TOKEN: &str = "xoxb-0123456789-bot-token-of-the-test";
pub const SIGNING_SECRET: &str = "a-signing-secret-of-the-test";
/// The user of the bot.
pub const BOT: &str = "UBOT0000";
/// A channel that the bot listens in.
pub const CHANNEL: &str = "C0000001";

const PATIENCE: Duration = Duration::from_mins(3);

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

/// A fault in one call of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The call is refused, to be made again after so many seconds.
    Limited(u64),
    /// The call is carried out, and the connection breaks off before the answer.
    DoneAndCut,
    /// The call is carried out, and the answer never comes.
    DoneAndHeld,
    /// The call is not carried out, and the answer is a 500.
    Broken,
    /// The call is not carried out, and the answer is this error.
    Refused(&'static str),
    /// The call is not carried out, and the answer never comes.
    Held,
}

#[derive(Default)]
struct Inner {
    messages: Vec<Message>,
    clock: u64,
    envelopes: u64,
    /// The envelopes that were sent and not acknowledged, each with the number of times that it was
    /// sent.
    open: BTreeMap<String, (Value, u32)>,
    sockets: BTreeMap<u64, mpsc::UnboundedSender<Frame>>,
    connections: u64,
    faults: Vec<(String, Fault)>,
    /// The number of texts that are taken before one is held, and whether that one is carried out.
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
            .route("/api/{method}", post(methods::call).get(methods::ask))
            .route("/link/", get(socket_mode::link))
            .route("/files/{name}", get(methods::file))
            .with_state(Arc::clone(&shared));
        let slack = Self {
            _server: Server::start(listener, router),
            shared,
        };
        slack.grants("app_mentions:read,channels:history,im:history,chat:write,files:read");
        slack
    }

    /// Gives the bot's token these scopes from now on.
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

    /// Mentions the bot in the channel, as this user; returns the message's name.
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

    /// Writes below a message, as this user.
    pub fn replies(&self, user: &str, thread: &str, text: &str) -> String {
        self.writes(user, CHANNEL, Some(thread), text)
    }

    /// Writes a message, as this user.
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

    /// Mentions the bot and sends a file, of which Slack tells this name and kind.
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

    /// Returns how many texts came that are held, carried out or not.
    pub fn held(&self) -> usize {
        self.lock().held
    }

    /// Presses the button in this place below a message, as this user.
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

    /// Deletes a message, as somebody does who may.
    pub fn deletes(&self, message: &Message) {
        self.lock().messages.retain(|other| other.ts != message.ts);
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

    /// Waits until the condition holds.
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
                // Before it is carried out: whoever sees the text sees that it is held.
                inner.held += 1;
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
