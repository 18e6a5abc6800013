//! Stands between program and server, and keeps what passes. It can drop the beginning of prompts
//! as some servers do, and be slow.

use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::fake::server::Server;

/// Ends when dropped.
pub struct Relay {
    address: String,
    passing: Arc<Passing>,
    _server: Server,
}

struct Passing {
    target: String,
    client: reqwest::Client,
    trouble: Trouble,
    exchanges: Mutex<Vec<Exchange>>,
}

/// A trouble of the line between program and server.
#[derive(Debug, Clone, Copy)]
pub enum Trouble {
    None,
    /// Only so many characters of a prompt arrive, the last ones, and nobody says so.
    Cuts(usize),
    /// Answers come so much later.
    Slow(Duration),
}

/// A request for a reply, and what came of it. One that was given up is not among them.
#[derive(Debug, Clone)]
pub struct Exchange {
    pub request: Value,
    pub status: u16,
    pub answer: Value,
}

impl Relay {
    pub fn start(target: &str, trouble: Trouble) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = format!("http://{}", listener.local_addr()?);
        let passing = Arc::new(Passing {
            target: target.to_owned(),
            client: reqwest::Client::builder().no_proxy().build()?,
            trouble,
            exchanges: Mutex::default(),
        });
        let router = Router::new().fallback(pass).with_state(Arc::clone(&passing));
        Ok(Self {
            address,
            passing,
            _server: Server::start(listener, router),
        })
    }

    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the requests for a reply that were answered, in the order of the answers.
    pub fn exchanges(&self) -> Vec<Exchange> {
        let exchanges = self.passing.exchanges.lock();
        exchanges.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn pass(State(passing): State<Arc<Passing>>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let url = format!("{}{}", passing.target, head.uri);
    let mut asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let body = match passing.trouble {
        Trouble::Cuts(most) if cut(&mut asked, most) => asked.to_string().into(),
        Trouble::None | Trouble::Cuts(_) | Trouble::Slow(_) => body,
    };
    let sent = passing.client.request(head.method, url);
    let sent = sent.header("content-type", "application/json").body(body).send().await;
    let answered = async {
        let answer = sent?;
        let kind = answer.headers().get(CONTENT_TYPE).cloned();
        Ok::<_, reqwest::Error>((answer.status(), kind, answer.bytes().await?))
    };
    let answered = answered.await;
    if let Trouble::Slow(by) = passing.trouble {
        tokio::time::sleep(by).await;
    }
    match answered {
        Ok((status, kind, bytes)) => {
            if asked["messages"].is_array() {
                let mut exchanges = passing.exchanges.lock().unwrap_or_else(PoisonError::into_inner);
                exchanges.push(Exchange {
                    request: asked,
                    status: status.as_u16(),
                    answer: whole(&bytes),
                });
            }
            let kind = kind.unwrap_or_else(|| HeaderValue::from_static("application/json"));
            (status, [(CONTENT_TYPE, kind)], bytes).into_response()
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

/// Returns an answer that came as one document, or a streamed one put together: its text, its
/// ending and its counts.
fn whole(bytes: &[u8]) -> Value {
    if let Ok(answer) = serde_json::from_slice(bytes) {
        return answer;
    }
    let text = String::from_utf8_lossy(bytes);
    let events = text.lines().map(|line| line.strip_prefix("data:").unwrap_or(line));
    let (mut answer, mut reason, mut content) = (json!({}), Value::Null, String::new());
    for event in events.filter_map(|event| serde_json::from_str::<Value>(event).ok()) {
        let choice = &event["choices"][0];
        if choice["finish_reason"].is_string() {
            reason = choice["finish_reason"].clone();
        }
        // Ollama's pieces have the form of a whole message.
        let piece = choice["delta"]["content"].as_str();
        content += piece.or(event["message"]["content"].as_str()).unwrap_or_default();
        for (key, value) in event.as_object().into_iter().flatten() {
            if key != "choices" && !value.is_null() {
                answer[key] = value.clone();
            }
        }
    }
    let message = json!({ "role": "assistant", "content": content });
    if answer["message"].is_object() {
        answer["message"] = message;
    } else {
        answer["choices"] = json!([{ "finish_reason": reason, "message": message }]);
    }
    answer
}

/// Leaves the last `most` characters of the messages' texts; says whether anything went.
fn cut(request: &mut Value, most: usize) -> bool {
    let mut room = most;
    let mut was_cut = false;
    let messages = request["messages"].as_array_mut();
    for message in messages.into_iter().flatten().rev() {
        let text = message["content"].as_str().unwrap_or_default();
        let length = text.chars().count();
        if length > room {
            message["content"] = text.chars().skip(length - room).collect::<String>().into();
            was_cut = true;
        }
        room = room.saturating_sub(length);
    }
    was_cut
}
