//! LINE: the calls that are used, and what comes in over HTTP.
//!
//! A push carries a retry key, under which LINE takes it once however often it is sent. An answer
//! with a reply token costs nothing; the token is good for one, for a short time.

pub mod request; // what LINE sends

use std::time::Duration;

use bytes::Bytes;
use reqwest::{Client, RequestBuilder, StatusCode};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};
use uuid::Uuid;

use super::TIMEOUT;
use super::config;
use super::outcome::{Failure, Outcome, fetch, send};
use super::place::Place;
use super::words::visible;
use crate::http;
use crate::secret::Clean;

/// Most characters of one message. LINE takes 5,000 units of UTF-16, and two of them may be one
/// character.
pub const LONGEST: usize = 2_400;
/// How long an answer may be given with a reply token.
pub const REPLY_WITHIN: Duration = Duration::from_secs(50);

/// A connection to LINE as the channel.
#[derive(Debug)]
pub struct Line {
    client: Client,
    api_url: String,
    data_url: String,
    token: SecretString,
}

impl Line {
    /// Prepares the connection, without a request; `None` where there is no access token.
    pub fn new(config: &config::Line) -> Result<Option<Self>, reqwest::Error> {
        let Some(token) = config.channel_access_token.clone() else {
            return Ok(None);
        };
        Ok(Some(Self {
            client: http::client(&config.trust).timeout(TIMEOUT).build()?,
            api_url: config.api_url.trim_end_matches('/').to_owned(),
            data_url: config.data_url.trim_end_matches('/').to_owned(),
            token,
        }))
    }

    /// Says something. `reply_token` must not be given after [`REPLY_WITHIN`]; `may_be_said` tells
    /// whether this was tried before, and nobody knows what came of it.
    pub async fn say(
        &self,
        place: &Place,
        id: Uuid,
        text: &Clean,
        reply_token: Option<&str>,
        may_be_said: bool,
    ) -> Outcome {
        let text: String = visible(text.as_str()).chars().take(LONGEST).collect();
        let messages = json!([{ "type": "text", "text": text }]);
        if let Some(token) = reply_token {
            let body = json!({ "replyToken": token, "messages": messages });
            return match self.call(self.post("reply").json(&body)).await {
                Ok(_) => Outcome::Taken(None),
                // A token is good once: if the answer was tried before, and the token is not too
                // old, it was that one.
                Err(Failure::Refused { status, .. }) if status == StatusCode::BAD_REQUEST && may_be_said => {
                    Outcome::Taken(None)
                }
                Err(Failure::Refused { status, .. }) if status == StatusCode::BAD_REQUEST => Outcome::NotAsReply,
                Err(failure) => failure.outcome(),
            };
        }
        let body = json!({ "to": place.channel, "messages": messages });
        match self
            .call(self.post("push").header("x-line-retry-key", id.to_string()).json(&body))
            .await
        {
            Ok(_) => Outcome::Taken(None),
            Err(Failure::Refused { status, .. }) if status == StatusCode::CONFLICT => Outcome::Taken(None),
            Err(failure) => failure.outcome_of_repeatable(),
        }
    }

    /// Returns the channel's name, for `doctor`.
    pub async fn examine(&self) -> Result<String, Failure> {
        let answer = self
            .call(self.client.get(format!("{}/v2/bot/info", self.api_url)))
            .await?;
        Ok(answer["displayName"].as_str().unwrap_or_default().to_owned())
    }

    /// Returns the address of the channel's webhook and whether it is on, for `doctor`; `None`
    /// where no address is set.
    pub async fn webhook(&self) -> Result<Option<(String, bool)>, Failure> {
        let asked = self
            .client
            .get(format!("{}/v2/bot/channel/webhook/endpoint", self.api_url));
        match self.call(asked).await {
            Ok(answer) => {
                let address = answer["endpoint"].as_str().unwrap_or_default().to_owned();
                Ok((!address.is_empty()).then(|| (address, answer["active"] == true)))
            }
            Err(Failure::Refused { status, .. }) if status == StatusCode::NOT_FOUND => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Fetches the picture of a message.
    pub async fn picture(&self, message: &str) -> Result<Bytes, Failure> {
        let address = format!("{}/v2/bot/message/{message}/content", self.data_url);
        let request = self.client.get(address).bearer_auth(self.token.expose_secret());
        fetch(request, "the picture").await
    }

    fn post(&self, what: &str) -> RequestBuilder {
        self.client.post(format!("{}/v2/bot/message/{what}", self.api_url))
    }

    async fn call(&self, request: RequestBuilder) -> Result<Value, Failure> {
        let request = request.bearer_auth(self.token.expose_secret());
        let (status, body) = send(request, "LINE").await?;
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() {
            return Ok(answer);
        }
        let said = answer["message"].as_str().unwrap_or("no message");
        let said = format!("LINE: {}", said.chars().take(200).collect::<String>());
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Failure::LoggedOut { status, said },
            _ => Failure::Refused { status, said },
        })
    }
}
