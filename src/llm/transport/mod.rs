//! Sends JSON to a model server: time-outs, retries, bounded answers, and an end at once when the
//! run is cancelled.
//!
//! A call to a model changes nothing on the server, so every transient failure may be tried again:
//! lost connections, cut bodies, 5xx and 429, three times. A reply that did not come within its
//! time is not asked for again: it would cost the same time once more.

pub(crate) mod server_info; // what is known of a server before anything is sent
mod schema_order; // writes the fields of a schema in the order they are required in
pub(crate) mod error_response; // what an HTTP error means
pub(crate) mod concurrency_limit; // how many requests are at a server at once

use std::sync::Arc;
use std::time::Duration;

use chrono::Utc;
use reqwest::{Client, Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::http::{AttemptError, Backoff, BodyError, client, read_body, retry, retry_after};
use crate::llm::error::LlmError;
use crate::llm::local_only::private_network::{self, PrivateNetworkResolver, PublicAddress};
use crate::llm::transport::error_response::{ErrorResponse, NextStep, RequestSummary};
use crate::llm::transport::schema_order::OrderedSchemas;
use crate::llm::transport::server_info::ServerInfo;

const BACKOFF: Backoff = Backoff::thrice(Duration::from_millis(300), 4.0);
/// For questions about the server, which it answers without a model.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);
/// No reply of a model is near this; what is, comes from something else.
const MAX_BODY_BYTES: usize = 64 << 20;
/// How long a rate limit without a known reset parks the run after the retries.
const UNKNOWN_RESET: Duration = Duration::from_mins(1);

/// The way to one model server.
#[derive(Debug)]
pub(crate) struct Transport {
    /// Made at the first call: it reads all of the machine's certificates, and most starts find
    /// nothing to ask a model.
    client: OnceCell<Client>,
    is_loopback: bool,
    reply_timeout: Duration,
    /// Taken out of error texts, should the server repeat them.
    secrets: Vec<SecretString>,
    /// Restricts the servers that anything is sent to.
    private_network: Option<Arc<PrivateNetworkResolver>>,
}

/// How one attempt failed.
enum AttemptFailure {
    NotLocal(LlmError),
    Answered(ErrorResponse),
    Broken(String),
    TooSlow(Duration),
}

impl Transport {
    /// Returns the way to the server at `address`. Proxies of the environment are used, but not for
    /// this machine.
    pub(crate) fn new(address: &Url, reply_timeout: Duration, secrets: Vec<SecretString>) -> Self {
        Self {
            client: OnceCell::new(),
            is_loopback: is_loopback(address),
            reply_timeout,
            secrets,
            private_network: None,
        }
    }

    /// Returns the same way, restricted to local servers.
    pub(crate) fn in_private_network(&self, resolver: PrivateNetworkResolver) -> Self {
        Self {
            client: OnceCell::new(),
            is_loopback: self.is_loopback,
            reply_timeout: self.reply_timeout,
            secrets: self.secrets.clone(),
            private_network: Some(Arc::new(resolver)),
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
        if let Some(network) = &self.private_network {
            // A proxy would look the name up for itself.
            builder = builder.no_proxy().dns_resolver(Arc::clone(network));
        }
        builder.build().map_err(|error| LlmError::Refused {
            what: format!("no HTTP client can be made: {}", reason(&error)),
            hint: "check the certificates and proxy settings of this machine".to_owned(),
        })
    }

    /// Sends `body` and returns what `read` makes of the answer.
    pub(crate) async fn call<T>(
        &self,
        info: &ServerInfo,
        url: &str,
        body: &Value,
        summary: RequestSummary,
        cancel: &CancellationToken,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Result<T, LlmError> {
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(LlmError::Cancelled),
            result = self.call_with_retries(info, url, body, summary, read) => result,
        }
    }

    async fn call_with_retries<T>(
        &self,
        info: &ServerInfo,
        url: &str,
        body: &Value,
        summary: RequestSummary,
        read: impl Fn(&Value) -> Result<T, String>,
    ) -> Result<T, LlmError> {
        let client = self.client().await?;
        let once = || async {
            let request = client.request(Method::POST, url).json(&OrderedSchemas(body));
            let answer = self.attempt(info, client, request, self.reply_timeout).await;
            let reply = answer.and_then(|answer| read(&answer).map_err(AttemptFailure::Broken));
            reply.map_err(|failure| after(failure, info, summary))
        };
        retry(BACKOFF, "a call to the model", once).await
    }

    /// Asks the server something about itself, once: whoever asks wants to know what is true now.
    pub(crate) async fn ask(&self, info: &ServerInfo, url: &str, body: Option<&Value>) -> Result<Value, LlmError> {
        let client = self.client().await?;
        let request = match body {
            Some(body) => client.post(url).json(body),
            None => client.get(url),
        };
        match self.attempt(info, client, request, QUESTION_TIMEOUT).await {
            Ok(answer) => Ok(answer),
            Err(AttemptFailure::NotLocal(error)) => Err(error),
            Err(AttemptFailure::Broken(reason)) => Err(unreachable(info, reason)),
            Err(AttemptFailure::TooSlow(limit)) => Err(unreachable(
                info,
                format!("it did not answer within {} s", limit.as_secs()),
            )),
            Err(AttemptFailure::Answered(response)) => {
                match response.next_step(info, RequestSummary::default(), Utc::now()) {
                    NextStep::Final(error) => Err(error),
                    NextStep::Again { reason, .. } => Err(unreachable(info, reason)),
                    NextStep::Slower { after } => Err(LlmError::RateLimited {
                        until: Utc::now() + after,
                    }),
                }
            }
        }
    }

    async fn attempt(
        &self,
        info: &ServerInfo,
        client: &Client,
        request: reqwest::RequestBuilder,
        limit: Duration,
    ) -> Result<Value, AttemptFailure> {
        let failure = |error: reqwest::Error| {
            if let (Some(network), Some(found)) = (&self.private_network, private_network::refusal_in(&error)) {
                return AttemptFailure::NotLocal(not_local(info, network, found));
            }
            if error.is_timeout() && !error.is_connect() {
                return AttemptFailure::TooSlow(limit);
            }
            AttemptFailure::Broken(reason(&error))
        };
        let request = request.headers(info.headers.clone()).timeout(limit);
        let request = request.build().map_err(failure)?;
        if let Some(network) = &self.private_network {
            let refused = |found: PublicAddress| AttemptFailure::NotLocal(not_local(info, network, &found));
            network.check(request.url()).map_err(refused)?;
        }
        let mut response = client.execute(request).await.map_err(failure)?;
        let status = response.status();
        let retry_after = retry_after(response.headers(), Utc::now());
        let body = read_body(&mut response, MAX_BODY_BYTES).await;
        let body = body.map_err(|error| match error {
            BodyError::TooLong => AttemptFailure::Broken(format!("the answer has more than {MAX_BODY_BYTES} bytes")),
            BodyError::Broken(error) => failure(error),
        })?;
        if !status.is_success() {
            return Err(AttemptFailure::Answered(ErrorResponse {
                status,
                retry_after,
                body: self.without_secrets(&String::from_utf8_lossy(&body)),
            }));
        }
        serde_json::from_slice(&body)
            .map_err(|error| AttemptFailure::Broken(format!("the answer is not JSON: {error}")))
    }

    fn without_secrets(&self, text: &str) -> String {
        let secrets = self.secrets.iter().map(ExposeSecret::expose_secret);
        let secrets = secrets.filter(|secret| !secret.is_empty());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

/// Decides whether a call that failed is made again, and when.
fn after(failure: AttemptFailure, info: &ServerInfo, summary: RequestSummary) -> AttemptError<LlmError> {
    let step = match failure {
        AttemptFailure::Answered(response) => response.next_step(info, summary, Utc::now()),
        AttemptFailure::NotLocal(error) => NextStep::Final(error),
        AttemptFailure::Broken(reason) => NextStep::Again {
            after: Duration::ZERO,
            reason,
        },
        AttemptFailure::TooSlow(limit) => NextStep::Final(unreachable(
            info,
            format!("no reply within {} s; raise llm.timeout_seconds", limit.as_secs()),
        )),
    };
    match step {
        NextStep::Final(error) => AttemptError::Final(error),
        NextStep::Slower { after } => AttemptError::Transient {
            error: LlmError::RateLimited {
                until: Utc::now() + after.max(UNKNOWN_RESET),
            },
            wait: after,
        },
        NextStep::Again { after, reason } => AttemptError::Transient {
            error: unreachable(info, format!("{reason} (tried four times)")),
            wait: after,
        },
    }
}

fn not_local(info: &ServerInfo, network: &PrivateNetworkResolver, found: &PublicAddress) -> LlmError {
    LlmError::NotLocal {
        address: info.address.clone(),
        rule: network.rule.clone(),
        reason: found.to_string(),
    }
}

fn unreachable(info: &ServerInfo, reason: String) -> LlmError {
    LlmError::Unreachable {
        address: info.address.clone(),
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
