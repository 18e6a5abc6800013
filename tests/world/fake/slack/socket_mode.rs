//! Socket Mode: what happens is told over connections that the bot opens, each time in an envelope
//! that it acknowledges.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message as Frame;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{Shared, send};

/// The time that Slack waits for an acknowledgement.
const ACKNOWLEDGED_WITHIN: Duration = Duration::from_secs(3);

pub(super) async fn link(State(shared): State<Arc<Shared>>, mut request: Request) -> Response {
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
