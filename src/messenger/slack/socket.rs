//! Socket Mode: what Slack tells comes over a websocket that the program opens.
//!
//! An envelope is acknowledged when what it tells is kept, and not before: Slack sends again what
//! is not acknowledged within three seconds, over this or the next connection. A connection on
//! which nothing comes, not even the answer to a ping, is given up.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::{Instant, interval, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role, WebSocketConfig};

use super::{Slack, refused};
use crate::http;
use crate::messenger::outcome::Failure;
use crate::messenger::{LARGEST_ANSWER, TIMEOUT};

/// Interval between pings.
const PING_EVERY: Duration = Duration::from_secs(10);
/// A connection on which nothing came for so long is dead.
const LONGEST_SILENCE: Duration = Duration::from_secs(35);
/// Longest time that keeping what an envelope tells may take: Slack waits three seconds.
const KEEPING: Duration = Duration::from_secs(10);
/// Pauses before a connection is opened: after one that ended, and after so many attempts in vain.
const PAUSES: [Duration; 5] = [
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(5),
    Duration::from_secs(15),
    Duration::from_mins(1),
];
/// Of so many attempts in vain one is told.
const TOLD_EVERY: usize = 60;

type Socket = WebSocketStream<reqwest::Upgraded>;

impl Slack {
    /// Listens for ever: opens a connection, and another one when it ends. `keep` takes the payload
    /// of an envelope and tells whether it is safely kept.
    pub async fn listen(&self, keep: impl AsyncFn(&Value) -> bool) {
        let mut failures = 0;
        loop {
            match self.open().await {
                Ok(socket) => {
                    failures = 0;
                    if let Err(reason) = hear(socket, &keep).await {
                        tracing::info!("the connection to Slack ended: {reason}; another one is opened");
                    }
                }
                Err(failure) => {
                    if is_told(failures) {
                        tracing::warn!("no connection to Slack: {failure}");
                    }
                    failures += 1;
                }
            }
            tokio::time::sleep(pause(failures)).await;
        }
    }

    /// Opens a connection.
    async fn open(&self) -> Result<Socket, Failure> {
        let address = self.address().await?;
        // The client takes over the connection of a request, and so goes through proxies and
        // trusts whom the other requests trust.
        let address = match address.split_once("://") {
            Some(("wss", rest)) => format!("https://{rest}"),
            Some(("ws", rest)) => format!("http://{rest}"),
            _ => return Err(refused("apps.connections.open names no address of a websocket")),
        };
        let key = generate_key();
        let request = self
            .upgrading
            .get(address)
            .header("connection", "Upgrade")
            .header("upgrade", "websocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", &key);
        let unreachable = |reason: String| Failure::Later {
            pause: Duration::ZERO,
            reason,
        };
        let response = timeout(TIMEOUT, request.send()).await;
        let response = response
            .map_err(|_| unreachable("the socket does not answer".to_owned()))?
            .map_err(|error| unreachable(format!("the socket: {}", http::reason(&error))))?;
        let accepted = response.headers().get("sec-websocket-accept");
        let is_accepted =
            accepted.is_some_and(|value| value.as_bytes() == derive_accept_key(key.as_bytes()).as_bytes());
        if response.status() != reqwest::StatusCode::SWITCHING_PROTOCOLS || !is_accepted {
            return Err(unreachable(format!("the socket answers status {}", response.status())));
        }
        let upgraded = timeout(TIMEOUT, response.upgrade()).await;
        let upgraded = upgraded
            .map_err(|_| unreachable("the socket does not open".to_owned()))?
            .map_err(|error| unreachable(format!("the socket: {}", http::reason(&error))))?;
        let limits = WebSocketConfig::default()
            .max_message_size(Some(LARGEST_ANSWER))
            .max_frame_size(Some(LARGEST_ANSWER));
        Ok(WebSocketStream::from_raw_socket(upgraded, Role::Client, Some(limits)).await)
    }
}

/// Tells whether an attempt in vain is told, by the number of those before it: the first one, and
/// about one in an hour, since Slack may need a person to be reached again.
fn is_told(failures: usize) -> bool {
    failures.is_multiple_of(TOLD_EVERY)
}

/// Returns the pause before the next attempt, by the number of those in vain since a connection was
/// open.
fn pause(failures: usize) -> Duration {
    PAUSES.get(failures).or(PAUSES.last()).copied().unwrap_or_default()
}

/// Hears a connection to its end, and says why it ended.
async fn hear(mut socket: Socket, keep: &impl AsyncFn(&Value) -> bool) -> Result<(), String> {
    let mut pings = interval(PING_EVERY);
    let mut heard_at = Instant::now();
    loop {
        let message = tokio::select! {
            message = socket.next() => message,
            _ = pings.tick() => {
                if heard_at.elapsed() > LONGEST_SILENCE {
                    return Err("nothing came any more".to_owned());
                }
                say(&mut socket, Message::Ping(bytes::Bytes::from_static(b"still there"))).await?;
                continue;
            }
        };
        let message = message.ok_or("it was closed")?.map_err(|error| error.to_string())?;
        heard_at = Instant::now();
        let Message::Text(text) = message else { continue };
        let Ok(envelope) = serde_json::from_str::<Value>(text.as_str()) else {
            continue;
        };
        if envelope["type"] == "disconnect" {
            let reason = envelope["reason"].as_str().unwrap_or("disconnect");
            return Err(format!("Slack closes it ({reason})"));
        }
        let Some(id) = envelope["envelope_id"].as_str() else {
            continue;
        };
        let is_kept = timeout(KEEPING, keep(&envelope["payload"])).await.unwrap_or(false);
        if is_kept {
            let acknowledgement = json!({ "envelope_id": id }).to_string();
            say(&mut socket, Message::text(acknowledgement)).await?;
        }
    }
}

async fn say(socket: &mut Socket, message: Message) -> Result<(), String> {
    let sent = timeout(TIMEOUT, socket.send(message)).await;
    sent.map_err(|_| "nothing can be sent".to_owned())?
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slack_that_is_not_reached_is_told_of_at_once_and_every_hour() {
        assert!(is_told(0) && !is_told(1));
        let (mut failures, mut told, mut waited) = (0, 0, Duration::ZERO);
        while waited < Duration::from_hours(24) {
            told += usize::from(is_told(failures));
            failures += 1;
            waited += pause(failures);
        }
        assert!((24..=25).contains(&told), "{told}");
        assert_eq!(pause(0), Duration::from_millis(200));
    }
}
