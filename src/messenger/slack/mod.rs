//! Slack: the methods that are used, and what comes in.

mod events; // what Slack tells
mod markup; // texts as Slack reads them
mod socket; // Socket Mode
pub mod request; // what Slack sends over HTTP

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use url::Url;
use uuid::Uuid;

use super::TIMEOUT;
use super::config;
use super::outcome::{Failure, Outcome, fetch, send};
use super::place::{Messenger, Place};
use super::words::Words;
use crate::http;
use crate::secret::Clean;
pub use events::{heard, time_of};

/// Most characters of one message. Slack takes 40,000 and asks for 4,000; a section holds 3,000.
pub const LONGEST: usize = 2_900;
/// Most characters of the value of a button.
pub const LONGEST_VALUE: usize = 2_000;
/// The name of the program's metadata, by which its own messages are found again.
const OWN: &str = "coding_agent_saying";
/// The header in which Slack tells the scopes of a token.
const SCOPES: &str = "x-oauth-scopes";
/// Pages that are looked through for a message.
const MOST_PAGES: usize = 5;

/// Errors behind which something may have been done.
const UNCLEAR: [&str; 4] = [
    "internal_error",
    "fatal_error",
    "request_timeout",
    "service_unavailable",
];

/// Errors of a limit that is over after a while. Slack answers them in the body of a 200, too.
const LIMITED: [&str; 3] = ["ratelimited", "rate_limited", "message_limit_exceeded"];
/// Errors that refuse the token, and with it every call until a person has mended that.
const LOGGED_OUT: [&str; 5] = [
    "invalid_auth",
    "not_authed",
    "token_expired",
    "token_revoked",
    "account_inactive",
];
/// Errors by which a message cannot be changed, however often that is tried.
const NOT_CHANGEABLE: [&str; 3] = ["message_not_found", "edit_window_closed", "cant_update_message"];

/// A connection to Slack as the app.
#[derive(Debug)]
pub struct Slack {
    client: Client,
    /// The client for websockets.
    upgrading: Client,
    api_url: String,
    app_token: Option<SecretString>,
    bot_token: SecretString,
    own: tokio::sync::OnceCell<Own>,
}

/// Who the bot is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Own {
    pub user: String,
    pub name: String,
    pub team: String,
}

impl Slack {
    /// Prepares the connection, without a request; `None` where there is no bot token.
    pub fn new(config: &config::Slack) -> Result<Option<Self>, reqwest::Error> {
        let Some(bot_token) = config.bot_token.clone() else {
            return Ok(None);
        };
        Ok(Some(Self {
            client: http::client(&config.trust).timeout(TIMEOUT).build()?,
            upgrading: http::client_to_take_over(&config.trust).build()?,
            api_url: config.api_url.trim_end_matches('/').to_owned(),
            app_token: config.app_token.clone(),
            bot_token,
            own: tokio::sync::OnceCell::new(),
        }))
    }

    /// Tells whether what people say comes by Socket Mode.
    pub fn has_socket(&self) -> bool {
        self.app_token.is_some()
    }

    /// Returns who the bot is; asked once.
    pub async fn own(&self) -> Result<&Own, Failure> {
        let ask = || async {
            let answer = self.call("auth.test", &self.bot_token, &json!({})).await?;
            let text = |key: &str| answer[key].as_str().unwrap_or_default().to_owned();
            Ok::<_, Failure>(Own {
                user: text("user_id"),
                name: text("user"),
                team: text("team"),
            })
        };
        self.own.get_or_try_init(ask).await
    }

    /// Asks for the address of a socket.
    async fn address(&self) -> Result<String, Failure> {
        let Some(token) = &self.app_token else {
            return Err(refused("there is no app_token"));
        };
        let answer = self.call("apps.connections.open", token, &json!({})).await?;
        answer["url"]
            .as_str()
            .map(str::to_owned)
            .ok_or_else(|| refused("apps.connections.open names no address"))
    }

    /// Checks the app's token, for `doctor`.
    pub async fn examine_socket(&self) -> Result<(), Failure> {
        self.address().await.map(|_| ())
    }

    /// Returns the scopes of the bot's token, where Slack tells them with its answer.
    pub async fn scopes(&self) -> Result<Option<Vec<String>>, Failure> {
        let request = self.client.post(format!("{}/auth.test", self.api_url));
        let request = request.bearer_auth(self.bot_token.expose_secret()).json(&json!({}));
        let answer = request.send().await;
        let answer = answer.map_err(|error| Failure::Unknown(format!("auth.test: {}", http::reason(&error))))?;
        let told = answer.headers().get(SCOPES).and_then(|told| told.to_str().ok());
        Ok(told.map(|told| told.split(',').map(|scope| scope.trim().to_owned()).collect()))
    }

    /// Says something new in a thread.
    pub async fn say(&self, place: &Place, id: Uuid, text: &Clean, words: &Words) -> Outcome {
        let mut body = markup::message(text, words);
        body["channel"] = json!(place.channel);
        if let Some(thread) = &place.thread {
            body["thread_ts"] = json!(thread);
        }
        body["metadata"] = json!({ "event_type": OWN, "event_payload": { "id": id } });
        match self.call("chat.postMessage", &self.bot_token, &body).await {
            Ok(answer) => Outcome::Taken(answer["ts"].as_str().map(str::to_owned)),
            Err(failure) => failure.outcome(),
        }
    }

    /// Changes something that was said. Repeating changes nothing.
    pub async fn change(&self, place: &Place, message: &str, text: &Clean, words: &Words) -> Outcome {
        let mut body = markup::message(text, words);
        body["channel"] = json!(place.channel);
        body["ts"] = json!(message);
        match self.call("chat.update", &self.bot_token, &body).await {
            Ok(_) => Outcome::Taken(None),
            Err(Failure::Refused { said, .. }) if is_not_changeable(&said) => Outcome::NotChangeable,
            Err(failure) => failure.outcome_of_repeatable(),
        }
    }

    /// Returns Slack's name for what was said under an id, if it was: of several messages that of
    /// the newest, since what could not be changed was said anew. A thread is told from its oldest
    /// message on, so that the newest copy may stand on a later page than another.
    pub async fn find(&self, place: &Place, id: Uuid) -> Result<Option<String>, Failure> {
        let id = id.to_string();
        let is_it = |message: &&Value| {
            let metadata = &message["metadata"];
            metadata["event_type"] == OWN && metadata["event_payload"]["id"] == id.as_str()
        };
        let mut newest: Option<String> = None;
        let mut cursor = String::new();
        for _ in 0..MOST_PAGES {
            let mut query = json!({
                "channel": place.channel, "limit": 200, "include_all_metadata": true,
            });
            if !cursor.is_empty() {
                query["cursor"] = json!(cursor);
            }
            let method = match &place.thread {
                Some(thread) => {
                    query["ts"] = json!(thread);
                    "conversations.replies"
                }
                None => "conversations.history",
            };
            let answer = self.ask(method, &query).await?;
            let messages = answer["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
            let found = messages
                .iter()
                .filter(is_it)
                .filter_map(|message| message["ts"].as_str());
            newest = newest.max(found.max().map(str::to_owned));
            // A channel is told from its newest message on.
            if newest.is_some() && place.thread.is_none() {
                break;
            }
            answer["response_metadata"]["next_cursor"]
                .as_str()
                .unwrap_or_default()
                .clone_into(&mut cursor);
            if cursor.is_empty() {
                break;
            }
        }
        Ok(newest)
    }

    /// Fetches a picture that somebody sent, from Slack's own servers: the token goes nowhere else.
    pub async fn picture(&self, address: &str) -> Result<Bytes, Failure> {
        let url = Url::parse(address).ok().filter(|url| is_own(&self.api_url, url));
        let url = url.ok_or_else(|| refused("the picture does not lie with Slack"))?;
        let request = self.client.get(url).bearer_auth(self.bot_token.expose_secret());
        fetch(request, "the picture").await
    }

    /// Calls a method that reads, whose arguments Slack takes in the query alone.
    async fn ask(&self, method: &str, query: &Value) -> Result<Value, Failure> {
        let pairs = query.as_object().into_iter().flatten().map(|(key, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            (key.clone(), text)
        });
        let request = self.client.get(format!("{}/{method}", self.api_url));
        let request = request
            .bearer_auth(self.bot_token.expose_secret())
            .query(&pairs.collect::<Vec<_>>());
        read(method, send(request, method).await?)
    }

    async fn call(&self, method: &str, token: &SecretString, body: &Value) -> Result<Value, Failure> {
        let request = self.client.post(format!("{}/{method}", self.api_url));
        let request = request.bearer_auth(token.expose_secret()).json(body);
        read(method, send(request, method).await?)
    }
}

/// Returns the answer if it is a good one: Slack says in the body what went wrong.
fn read(method: &str, (status, body): (StatusCode, Bytes)) -> Result<Value, Failure> {
    let answer: Value = serde_json::from_slice(&body)
        .map_err(|_| Failure::Unknown(format!("{method}: status {status}, and the answer is not JSON")))?;
    if answer["ok"] == true {
        return Ok(answer);
    }
    let error = answer["error"].as_str().unwrap_or("unknown_error");
    let error: String = error.chars().take(100).collect();
    match error.as_str() {
        limited if LIMITED.contains(&limited) => Err(Failure::Later {
            pause: Duration::from_secs(30),
            reason: format!("{method}: {error}"),
        }),
        unclear if UNCLEAR.contains(&unclear) => Err(Failure::Unknown(format!("{method}: {error}"))),
        refused if LOGGED_OUT.contains(&refused) => Err(Failure::LoggedOut {
            status,
            said: format!("{method}: {error}"),
        }),
        _ => Err(Failure::Refused {
            status,
            said: format!("{method}: {error}"),
        }),
    }
}

/// Tells whether the error in a refusal says that a message cannot be changed.
fn is_not_changeable(said: &str) -> bool {
    let error = said.rsplit(": ").next().unwrap_or_default();
    NOT_CHANGEABLE.contains(&error)
}

/// Tells whether an address is Slack's: that of its interface, or of a server below that name.
fn is_own(api_url: &str, url: &Url) -> bool {
    let Ok(api) = Url::parse(api_url) else { return false };
    if url.origin() == api.origin() {
        return true;
    }
    let below = |name: &str| {
        let other = url.domain().unwrap_or_default();
        other.strip_suffix(name).is_some_and(|before| before.ends_with('.'))
    };
    url.scheme() == "https" && api.scheme() == "https" && url.port().is_none() && api.domain().is_some_and(below)
}

fn refused(said: &str) -> Failure {
    Failure::Refused {
        status: StatusCode::BAD_REQUEST,
        said: said.to_owned(),
    }
}

/// Returns the conversation of a message.
fn place(channel: &str, thread: Option<&str>) -> Place {
    Place {
        messenger: Messenger::Slack,
        channel: channel.to_owned(),
        thread: thread.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::Uri;

    use super::*;

    /// Returns the failure that an error is which stands in a body without a status of its own.
    fn failure(error: &str) -> Failure {
        let body = json!({ "ok": false, "error": error }).to_string();
        read("chat.update", (StatusCode::OK, body.into())).unwrap_err()
    }

    #[test]
    fn a_text_waits_for_the_end_of_a_limit_whatever_slack_calls_it() {
        for error in ["ratelimited", "rate_limited", "message_limit_exceeded"] {
            let outcome = failure(error).outcome();
            assert!(matches!(outcome, Outcome::Later { .. }), "{error}: {outcome:?}");
        }
    }

    #[test]
    fn a_token_that_is_refused_is_no_refusal_of_the_text() {
        for error in LOGGED_OUT {
            let outcome = failure(error).outcome();
            assert!(matches!(outcome, Outcome::Later { .. }), "{error}: {outcome:?}");
        }
        for error in NOT_CHANGEABLE.into_iter().chain(["channel_not_found", "missing_scope"]) {
            let outcome = failure(error).outcome();
            assert!(matches!(outcome, Outcome::Refused { .. }), "{error}: {outcome:?}");
        }
        assert!(is_not_changeable("chat.update: edit_window_closed"));
        assert!(!is_not_changeable("chat.update: channel_not_found"));
    }

    #[tokio::test]
    async fn what_was_said_anew_is_found_on_a_later_page_than_its_older_copy() {
        let id = Uuid::from_u128(7);
        let said = |ts: &str, id: Uuid| {
            let metadata = json!({ "event_type": OWN, "event_payload": { "id": id } });
            json!({ "ts": ts, "metadata": metadata })
        };
        let page = |messages: Value, next: &str| json!({ "ok": true, "messages": messages, "response_metadata": { "next_cursor": next } });
        let thread = page(json!([said("1700000001.000100", id)]), "more");
        let other = said("1700000003.000100", Uuid::from_u128(8));
        let behind = page(json!([said("1700000002.000100", id), other]), "");
        let (first, second) = (thread.to_string(), behind.to_string());
        let answer = move |uri: Uri| {
            let is_second = uri.query().unwrap_or_default().contains("cursor=more");
            let page = if is_second { second.clone() } else { first.clone() };
            async move { page }
        };
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let config = config::Slack {
            api_url: format!("http://{}", listener.local_addr().unwrap()),
            bot_token: Some(SecretString::from("xoxb-test")),
            ..config::Slack::default()
        };
        let serving = tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        let slack = Slack::new(&config).unwrap().unwrap();
        let newest = slack.find(&place("C1", Some("1700000000.000100")), id).await.unwrap();
        assert_eq!(newest.as_deref(), Some("1700000002.000100"));
        // Of a channel the newest messages come first, so that no later page is asked for.
        let newest = slack.find(&place("C1", None), id).await.unwrap();
        assert_eq!(newest.as_deref(), Some("1700000001.000100"));
        serving.abort();
    }

    #[test]
    fn the_token_is_sent_to_slack_alone() {
        let own = |address: &str| is_own("https://slack.com/api", &address.parse().unwrap());
        for address in [
            "https://files.slack.com/files-pri/T1-F1/a.png",
            "https://slack.com/x",
            "https://acme.slack.com/x",
        ] {
            assert!(own(address), "{address}");
        }
        for address in [
            "http://files.slack.com/x",
            "https://files.slack.com:8443/x",
            "https://evilslack.com/x",
            "https://slack.com.evil.example/x",
            "https://slack.com@evil.example/x",
            "https://192.0.2.1/x",
            "file:///etc/passwd",
        ] {
            assert!(!own(address), "{address}");
        }
        let local = |address: &str| is_own("http://127.0.0.1:9000/api", &address.parse().unwrap());
        assert!(local("http://127.0.0.1:9000/files/a") && !local("http://127.0.0.1:9001/files/a"));
    }
}
