//! Sends JSON to a model server: time-outs, retries, bounded answers, and an end at once when the
//! run is cancelled.
//!
//! A call to a model changes nothing on the server, so every transient failure may be tried again:
//! lost connections, cut bodies, 5xx and 429, three times. A reply that did not come within its
//! time is not asked for again, nor one that a gateway waited for and gave up: it would cost the
//! same once more. For the same reason a reply that broke off after it had begun, or that the
//! server says it did not finish, is asked for only once more: what ends two of them ends the third
//! as well. A reply whose calls the server could not read is none of these: it is handed on as one
//! that cannot be read, so that the model is told.

pub(crate) mod server_info; // what is known of a server before anything is sent
mod schema_order; // writes the fields of a schema in the order they are required in
pub(crate) mod concurrency_limit; // how many requests are at a server at once
mod overflow; // how servers say that a prompt does not fit
mod tool_support; // how servers say that they take no tools, or could not read a call
pub(crate) mod role_order; // how servers refuse the order of messages
pub(crate) mod error_response; // what an HTTP error means
mod attempt; // how an attempt failed, and whether another is made
pub(crate) mod event_stream; // the events of a streamed reply
pub(crate) mod streaming; // reads streamed answers as they come

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use bytes::Bytes;
use chrono::Utc;
use reqwest::{Client, Method, Url};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;

use crate::certificates::Trust;
use crate::http::page::is_page;
use crate::http::proxy::Proxy;
use crate::http::remedy::Reason;
use crate::http::{AttemptError, Backoff, BodyError, Pauses, client, read_body, reason, retry_after, retry_or};
use crate::llm::error::LlmError;
use crate::llm::local_only::private_network::{self, PrivateNetworkResolver, PublicAddress};
use crate::llm::transport::attempt::{AttemptFailure, after, away, given_up, not_local, unreachable};
use crate::llm::transport::error_response::{ErrorResponse, NextStep, RequestSummary};
use crate::llm::transport::event_stream::Framing;
use crate::llm::transport::schema_order::OrderedSchemas;
use crate::llm::transport::server_info::ServerInfo;
use crate::llm::transport::streaming::Received;

const BACKOFF: Backoff = Backoff::thrice(Duration::from_millis(300), 4.0);
/// Time limit of requests about the server, which it answers without a model.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum size of an answer. No reply of a model is near it.
const MAX_BODY_BYTES: usize = 64 << 20;
/// Most fields of a request that one attempt learns to leave out: it sends once more than that.
const MOST_ADAPTATIONS: usize = 4;
/// The kind of all requests for replies: a server limits them together.
const REPLIES: &str = "replies";

/// The way to one model server.
#[derive(Debug)]
pub(crate) struct Transport {
    /// Made at the first call: it reads all of the machine's certificates, and most starts find
    /// nothing to ask a model.
    client: OnceCell<Client>,
    is_loopback: bool,
    /// The proxy that requests go through, if there is one.
    proxy: Option<Proxy>,
    /// Time limit of a whole reply; of each silence in a streamed one.
    reply_timeout: Duration,
    /// Time limit of a whole streamed reply.
    whole_timeout: Duration,
    /// Secrets that are removed from error texts, in case the server repeats them.
    secrets: Vec<SecretString>,
    trust: Trust,
    /// Restricts the servers that anything is sent to.
    private_network: Option<Arc<PrivateNetworkResolver>>,
    pauses: Arc<Pauses>,
}

/// A request for a reply, and how its answer is read.
pub(crate) trait ReplyRequest {
    type Reply;

    fn body(&self) -> Value;
    /// Returns why the server broke the reply off, if it says so in an answer.
    fn broken_off(&self, answer: &Value) -> Option<String>;
    fn read(&self, received: Received) -> Result<Self::Reply, String>;
    fn framing(&self) -> Framing;
    /// Returns the reply of which the server says only why it could not read its calls.
    fn unread(&self, reason: String) -> Self::Reply;
    /// Adds an event of a stream to the answer; returns whether the reply is finished.
    fn add(&self, answer: &mut Value, event: Value) -> Result<bool, String>;
    /// Returns the text that the last events wrote on.
    fn written_on<'answer>(&self, answer: &'answer mut Value) -> Option<&'answer mut String>;
    /// Ends an answer whose events are not all there, as the server does at the length limit.
    fn end_at_limit(&self, answer: &mut Value);
    /// Makes later bodies omit what was refused in this one; returns false if nothing can be done.
    fn adapt(&self, refusal: &str, body: &Value) -> bool;
    /// Is called for each event of a stream.
    fn arrived(&self);
}

impl Transport {
    /// Returns the transport to the server at `address`. Proxies of the environment are used, but
    /// not for this machine.
    pub(crate) fn new(
        address: &Url,
        (reply_timeout, whole_timeout): (Duration, Duration),
        secrets: Vec<SecretString>,
        trust: Trust,
    ) -> Self {
        Self {
            client: OnceCell::new(),
            is_loopback: is_loopback(address),
            proxy: Proxy::on_the_way(address).filter(|_| !is_loopback(address)),
            reply_timeout,
            whole_timeout,
            secrets,
            trust,
            private_network: None,
            pauses: Arc::default(),
        }
    }

    /// Tells whether the server is at a loopback address, which is another one on each machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.is_loopback
    }

    /// Returns the same transport, restricted to local servers.
    pub(crate) fn in_private_network(&self, resolver: PrivateNetworkResolver) -> Self {
        Self {
            client: OnceCell::new(),
            is_loopback: self.is_loopback,
            proxy: None,
            reply_timeout: self.reply_timeout,
            whole_timeout: self.whole_timeout,
            secrets: self.secrets.clone(),
            trust: self.trust.clone(),
            private_network: Some(Arc::new(resolver)),
            pauses: Arc::clone(&self.pauses),
        }
    }

    async fn client(&self) -> Result<&Client, LlmError> {
        self.client.get_or_try_init(async || self.new_client()).await
    }

    fn new_client(&self) -> Result<Client, LlmError> {
        let mut builder = client(&self.trust);
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

    /// Sends the request and returns what it makes of the answer.
    pub(crate) async fn call<R: ReplyRequest>(
        &self,
        info: &ServerInfo,
        url: &str,
        request: &R,
        summary: RequestSummary,
        cancel: &CancellationToken,
    ) -> Result<R::Reply, LlmError> {
        tokio::select! {
            biased;
            // What is not waited for any more is dropped, and the connection with it.
            () = cancel.cancelled() => Err(LlmError::Cancelled),
            result = self.call_with_retries(info, url, request, summary) => result,
        }
    }

    async fn call_with_retries<R: ReplyRequest>(
        &self,
        info: &ServerInfo,
        url: &str,
        request: &R,
        summary: RequestSummary,
    ) -> Result<R::Reply, LlmError> {
        let client = self.client().await?;
        let was_cut_off = AtomicBool::new(false);
        let once = || async {
            for _ in 0..=MOST_ADAPTATIONS {
                self.pauses.over(&[REPLIES]).await;
                let body = request.body();
                let begun = Instant::now();
                let reply = self.attempt_reply(info, client, url, request, &body).await;
                let summary = RequestSummary {
                    took: begun.elapsed(),
                    ..summary
                };
                match reply {
                    // Asked the same, the model would mostly write the same: it has to be told.
                    Err(AttemptFailure::Answered(response)) if summary.with_tools && response.blames_the_reply() => {
                        return Ok(request.unread(response.message()));
                    }
                    Err(AttemptFailure::Answered(response)) if response.is_about_the_form() => {
                        if !request.adapt(&response.body, &body) {
                            return Err(after(AttemptFailure::Answered(response), info, summary, &was_cut_off));
                        }
                        tracing::debug!("the server refused a part of the request, which is sent in another form");
                    }
                    reply => {
                        return reply
                            .map_err(|failure| after(failure, info, summary, &was_cut_off))
                            .inspect_err(|failed| self.note_pause(failed));
                    }
                }
            }
            let reason = "it refused one field of the request after the other".to_owned();
            Err(AttemptError::Final(unreachable(info, reason)))
        };
        retry_or(BACKOFF, "a call to the model", once, given_up).await
    }

    /// Has all conversations wait for the end of a pause that the server asked one of them for.
    fn note_pause(&self, failed: &AttemptError<LlmError>) {
        if let AttemptError::Transient { error, wait } = failed
            && matches!(error, LlmError::RateLimited { .. })
        {
            self.pauses.note(REPLIES, *wait);
        }
    }

    async fn attempt_reply<R: ReplyRequest>(
        &self,
        info: &ServerInfo,
        client: &Client,
        url: &str,
        request: &R,
        body: &Value,
    ) -> Result<R::Reply, AttemptFailure> {
        let sent = client.request(Method::POST, url).json(&OrderedSchemas(body));
        let received = if body["stream"] == true {
            self.attempt_stream(info, client, sent, request).await?
        } else {
            self.attempt(info, client, sent, self.reply_timeout).await?.into()
        };
        if let Some(response) = self.error_in(&received.answer) {
            return Err(AttemptFailure::Answered(response));
        }
        if let Some(reason) = request.broken_off(&received.answer) {
            return Err(AttemptFailure::GivenUp(reason.into()));
        }
        request.read(received).map_err(AttemptFailure::from)
    }

    /// Asks the server something about itself, without retries, since the caller wants to know the
    /// current state.
    pub(crate) async fn ask(&self, info: &ServerInfo, url: &str, body: Option<&Value>) -> Result<Value, LlmError> {
        self.ask_within(info, url, body, QUESTION_TIMEOUT).await
    }

    /// Asks the server for something that takes it as long as a reply, such as loading a model.
    pub(crate) async fn ask_patiently(&self, info: &ServerInfo, url: &str, body: &Value) -> Result<Value, LlmError> {
        self.ask_within(info, url, Some(body), self.reply_timeout).await
    }

    async fn ask_within(
        &self,
        info: &ServerInfo,
        url: &str,
        body: Option<&Value>,
        limit: Duration,
    ) -> Result<Value, LlmError> {
        let client = self.client().await?;
        let request = match body {
            Some(body) => client.post(url).json(body),
            None => client.get(url),
        };
        let begun = Instant::now();
        match self.attempt(info, client, request, limit).await {
            Ok(answer) => Ok(answer),
            Err(AttemptFailure::NotLocal(error)) => Err(error),
            Err(AttemptFailure::Away(reason)) => Err(away(info, reason)),
            Err(AttemptFailure::Broken(reason) | AttemptFailure::CutOff(reason) | AttemptFailure::GivenUp(reason)) => {
                Err(unreachable(info, reason))
            }
            Err(AttemptFailure::TooSlow(limit) | AttemptFailure::Silent(limit) | AttemptFailure::Endless(limit)) => {
                Err(unreachable(
                    info,
                    format!("it did not answer within {} s", limit.as_secs()),
                ))
            }
            Err(AttemptFailure::Answered(response)) => {
                let summary = RequestSummary {
                    took: begun.elapsed(),
                    ..RequestSummary::default()
                };
                match response.next_step(info, summary, Utc::now()) {
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
        let mut response = self.send(info, client, request, limit).await?;
        let body = self.body(info, &mut response, limit).await?;
        serde_json::from_slice(&body).map_err(|error| AttemptFailure::from(format!("the answer is not JSON: {error}")))
    }

    /// Sends a request, and returns the answer as soon as its head is there. All of the answer has
    /// to be there within `limit`.
    async fn send(
        &self,
        info: &ServerInfo,
        client: &Client,
        request: reqwest::RequestBuilder,
        limit: Duration,
    ) -> Result<reqwest::Response, AttemptFailure> {
        let failure = |error: reqwest::Error| self.failure(info, &error, limit);
        let request = request.headers(info.headers.clone()).timeout(limit);
        let request = request.build().map_err(failure)?;
        if let Some(network) = &self.private_network {
            let refused = |found: PublicAddress| AttemptFailure::NotLocal(not_local(info, network, &found));
            network.check(request.url()).map_err(refused)?;
        }
        client.execute(request).await.map_err(|error| {
            let is_connect = error.is_connect();
            failure(error).of_connecting(is_connect, info)
        })
    }

    /// Reads the whole of an answer; one that is no success is a failure.
    async fn body(
        &self,
        info: &ServerInfo,
        response: &mut reqwest::Response,
        limit: Duration,
    ) -> Result<Bytes, AttemptFailure> {
        let status = response.status();
        let retry_after = retry_after(response.headers(), Utc::now());
        let body = read_body(response, MAX_BODY_BYTES).await;
        let body = body.map_err(|error| match error {
            BodyError::TooLong => AttemptFailure::from(format!("the answer has more than {MAX_BODY_BYTES} bytes")),
            BodyError::Broken(error) => self.failure(info, &error, limit),
        })?;
        if status.is_success() {
            return Ok(body);
        }
        let body = self.without_secrets(&String::from_utf8_lossy(&body));
        Err(AttemptFailure::Answered(ErrorResponse {
            status,
            retry_after,
            proxy: self.proxy.clone().filter(|_| is_page(body.as_bytes())),
            body,
        }))
    }

    fn failure(&self, info: &ServerInfo, error: &reqwest::Error, limit: Duration) -> AttemptFailure {
        if let (Some(network), Some(found)) = (&self.private_network, private_network::refusal_in(error)) {
            return AttemptFailure::NotLocal(not_local(info, network, found));
        }
        if error.is_timeout() && !error.is_connect() {
            return AttemptFailure::TooSlow(limit);
        }
        let why = Reason::of_own_words(&reason(error));
        AttemptFailure::Broken(match &self.proxy {
            // An answer that breaks off has begun, so the server was reached.
            Some(proxy) if !error.is_body() && !error.is_decode() => proxy.in_reason(why),
            Some(_) | None => why,
        })
    }

    fn without_secrets(&self, text: &str) -> String {
        let secrets = self.secrets.iter().map(ExposeSecret::expose_secret);
        let secrets = secrets.filter(|secret| !secret.is_empty());
        secrets.fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

fn is_loopback(address: &Url) -> bool {
    match address.host() {
        Some(url::Host::Domain(name)) => name == "localhost" || name.ends_with(".localhost"),
        Some(url::Host::Ipv4(ip)) => ip.is_loopback(),
        Some(url::Host::Ipv6(ip)) => ip.is_loopback(),
        None => false,
    }
}
