//! Sends JSON to a model server: time-outs, retries, bounded answers, and an end at once when the
//! run is cancelled.
//!
//! A call to a model changes nothing on the server, so every transient failure may be tried again:
//! lost connections, cut bodies, 5xx and 429, three times. A reply that did not come within its
//! time is not asked for again: it would cost the same time once more.

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use reqwest::{Client, Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use super::LlmError;
use super::facts::Facts;
use super::in_order::InOrder;
use super::nearby::{self, Nearby};
use super::refusal::{Asked, Refusal, Verdict};
use crate::http::{AttemptError, Backoff, BodyError, client, read_body, retry, retry_after};

const BACKOFF: Backoff = Backoff::thrice(Duration::from_millis(300), 4.0);
/// For questions about the server, which it answers without a model.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);
/// No reply of a model is near this; what is, comes from something else.
const MAX_BODY_BYTES: usize = 64 << 20;
/// How long a rate limit without a known reset parks the run after the retries.
const UNKNOWN_RESET: Duration = Duration::from_mins(1);

/// A line to one model server.
#[derive(Debug)]
pub(super) struct Http {
    /// Made at the first call: it reads all of the machine's certificates, and most starts find
    /// nothing to ask a model.
    client: OnceCell<Client>,
    is_loopback: bool,
    reply_timeout: Duration,
    /// Taken out of error texts, should the server repeat it.
    key: Option<SecretString>,
    /// Nothing is sent to servers behind this wall.
    wall: Option<Arc<Nearby>>,
}

enum Trouble {
    TooFar(LlmError),
    Refused(Refusal),
    Broken(String),
    TooSlow(Duration),
}

impl Http {
    /// Returns a line to the server at `address`. Proxies of the environment are used, but not for
    /// this machine.
    pub(super) fn new(address: &Url, reply_timeout: Duration, key: Option<SecretString>) -> Self {
        Self {
            client: OnceCell::new(),
            is_loopback: is_loopback(address),
            reply_timeout,
            key,
            wall: None,
        }
    }

    /// Returns the same line with a wall around what is near.
    pub(super) fn walled_in(&self, wall: Nearby) -> Self {
        Self {
            client: OnceCell::new(),
            is_loopback: self.is_loopback,
            reply_timeout: self.reply_timeout,
            key: self.key.clone(),
            wall: Some(Arc::new(wall)),
        }
    }

    async fn client(&self) -> Result<&Client, LlmError> {
        self.client.get_or_try_init(async || self.new_client()).await
    }

    fn new_client(&self) -> Result<Client, LlmError> {
        let mut builder = client();
        if self.is_loopback {
            builder = builder.no_proxy();
        }
        if let Some(wall) = &self.wall {
            // A proxy would look the name up for itself.
            builder = builder.no_proxy().dns_resolver(Arc::clone(wall));
        }
        builder.build().map_err(|error| LlmError::Refused {
            what: format!("no HTTP client can be made: {}", reason(&error)),
            mend: "check the certificates and proxy settings of this machine".to_owned(),
        })
    }

    /// Sends `body` and returns what `read` makes of the answer.
    pub(super) async fn call<T>(
        &self,
        facts: &Facts,
        url: &str,
        body: &Value,
        asked: Asked,
        cancel: &CancellationToken,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Result<T, LlmError> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(LlmError::Cancelled),
            result = self.call_with_retries(facts, url, body, asked, read) => result,
        }
    }

    async fn call_with_retries<T>(
        &self,
        facts: &Facts,
        url: &str,
        body: &Value,
        asked: Asked,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Result<T, LlmError> {
        let client = self.client().await?;
        let once = || async {
            let request = client.request(Method::POST, url).json(&InOrder(body));
            let answer = self.attempt(facts, client, request, self.reply_timeout).await;
            let reply = answer.and_then(|answer| read(&answer).map_err(Trouble::Broken));
            reply.map_err(|trouble| after(trouble, facts, asked))
        };
        retry(BACKOFF, "a call to the model", once).await
    }

    /// Asks the server something about itself, once: whoever asks wants to know what is true now.
    pub(super) async fn ask(&self, facts: &Facts, url: &str, body: Option<&Value>) -> Result<Value, LlmError> {
        let client = self.client().await?;
        let request = match body {
            Some(body) => client.post(url).json(body),
            None => client.get(url),
        };
        match self.attempt(facts, client, request, QUESTION_TIMEOUT).await {
            Ok(answer) => Ok(answer),
            Err(Trouble::TooFar(error)) => Err(error),
            Err(Trouble::Broken(reason)) => Err(unreachable(facts, reason)),
            Err(Trouble::TooSlow(limit)) => Err(unreachable(
                facts,
                format!("it did not answer within {} s", limit.as_secs()),
            )),
            Err(Trouble::Refused(refusal)) => match refusal.verdict(facts, Asked::default(), Utc::now()) {
                Verdict::Final(error) => Err(error),
                Verdict::Again { reason, .. } => Err(unreachable(facts, reason)),
                Verdict::Slower { after } => Err(LlmError::RateLimited {
                    until: Utc::now() + after,
                }),
            },
        }
    }

    async fn attempt(
        &self,
        facts: &Facts,
        client: &Client,
        request: reqwest::RequestBuilder,
        limit: Duration,
    ) -> Result<Value, Trouble> {
        let trouble = |error: reqwest::Error| {
            if let (Some(wall), Some(far)) = (&self.wall, nearby::wall_in(&error)) {
                return Trouble::TooFar(too_far(facts, wall, far));
            }
            if error.is_timeout() && !error.is_connect() {
                return Trouble::TooSlow(limit);
            }
            Trouble::Broken(reason(&error))
        };
        let request = request.headers(facts.headers.clone()).timeout(limit);
        let request = request.build().map_err(trouble)?;
        if let Some(wall) = &self.wall {
            let far = |far: nearby::TooFar| Trouble::TooFar(too_far(facts, wall, &far));
            wall.check(request.url()).map_err(far)?;
        }
        let mut response = client.execute(request).await.map_err(trouble)?;
        let status = response.status();
        let retry_after = retry_after(response.headers(), Utc::now());
        let body = read_body(&mut response, MAX_BODY_BYTES).await;
        let body = body.map_err(|error| match error {
            BodyError::TooLong => Trouble::Broken(format!("the answer has more than {MAX_BODY_BYTES} bytes")),
            BodyError::Broken(error) => trouble(error),
        })?;
        if !status.is_success() {
            return Err(Trouble::Refused(Refusal {
                status,
                retry_after,
                body: self.without_key(&String::from_utf8_lossy(&body)),
            }));
        }
        serde_json::from_slice(&body).map_err(|error| Trouble::Broken(format!("the answer is not JSON: {error}")))
    }

    fn without_key(&self, text: &str) -> String {
        match &self.key {
            Some(key) if !key.expose_secret().is_empty() => text.replace(key.expose_secret(), "***"),
            _ => text.to_owned(),
        }
    }
}

/// Decides whether a call that failed is made again, and when.
fn after(trouble: Trouble, facts: &Facts, asked: Asked) -> AttemptError<LlmError> {
    let verdict = match trouble {
        Trouble::Refused(refusal) => refusal.verdict(facts, asked, Utc::now()),
        Trouble::TooFar(error) => Verdict::Final(error),
        Trouble::Broken(reason) => Verdict::Again {
            after: Duration::ZERO,
            reason,
        },
        Trouble::TooSlow(limit) => Verdict::Final(unreachable(
            facts,
            format!("no reply within {} s; raise llm.timeout_seconds", limit.as_secs()),
        )),
    };
    match verdict {
        Verdict::Final(error) => AttemptError::Final(error),
        Verdict::Slower { after } => AttemptError::Transient {
            error: LlmError::RateLimited {
                until: Utc::now() + after.max(UNKNOWN_RESET),
            },
            wait: after,
        },
        Verdict::Again { after, reason } => AttemptError::Transient {
            error: unreachable(facts, format!("{reason} (tried four times)")),
            wait: after,
        },
    }
}

fn too_far(facts: &Facts, wall: &Nearby, far: &nearby::TooFar) -> LlmError {
    LlmError::TooFar {
        address: facts.address.clone(),
        rule: wall.rule.clone(),
        reason: far.to_string(),
    }
}

fn unreachable(facts: &Facts, reason: String) -> LlmError {
    LlmError::Unreachable {
        address: facts.address.clone(),
        reason,
    }
}

/// Returns the error with its causes: the outermost one of reqwest says only that something went
/// wrong.
fn reason(error: &reqwest::Error) -> String {
    let mut causes = Vec::new();
    let mut cause: Option<&dyn std::error::Error> = std::error::Error::source(error);
    while let Some(error) = cause {
        causes.push(error.to_string());
        cause = error.source();
    }
    causes.pop().unwrap_or_else(|| error.to_string())
}

fn is_loopback(address: &Url) -> bool {
    match address.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
