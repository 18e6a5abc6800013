//! Spans on their way to the collector: gathered for a moment, sent together, and sent again while
//! it is away, as long as there is room.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use opentelemetry::KeyValue;
use opentelemetry_http::{HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{Protocol, RetryPolicy, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SpanData, SpanExporter as _};
use secrecy::ExposeSecret;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::Config;
use super::spans::{CONVENTIONS, NAME, VERSION, Weaver};
use crate::http::{self, read_body};
use crate::journal::fact::Entry;

/// Interval between two deliveries.
const GATHER: Duration = Duration::from_secs(2);
/// Spans that are sent together.
const MOST_TOGETHER: usize = 512;
/// Spans that wait; the oldest are left out where there are more.
const MOST_WAITING: usize = 8_192;
/// Time for one delivery.
const LONGEST: Duration = Duration::from_secs(10);
/// Pause after a delivery failed.
const REST: Duration = Duration::from_secs(15);
/// Deliveries of the same spans; a collector that is there and does not want them will not want
/// them later.
const MOST_ATTEMPTS: u32 = 20;
/// Bytes of an answer, of which only what it says was refused is of interest.
const LONGEST_ANSWER: usize = 64 * 1024;

/// Sends spans to a collector.
pub(super) struct Sender {
    exporter: SpanExporter,
    waiting: VecDeque<SpanData>,
    /// Nothing is sent before.
    resting: Option<Instant>,
    /// How often the spans at the front were sent in vain.
    attempts: u32,
}

impl Sender {
    pub(super) fn new(endpoint: &str, config: &Config) -> Result<Self, String> {
        let client = http::client(&config.trust).timeout(LONGEST).build();
        let client = Client(client.map_err(|error| http::reason(&error))?);
        let headers = config.headers.iter();
        let headers: HashMap<String, String> = headers
            .map(|(name, value)| (name.clone(), value.expose_secret().to_owned()))
            .collect();
        let mut exporter = SpanExporter::builder()
            .with_http()
            .with_http_client(client)
            .with_headers(headers)
            .with_endpoint(endpoint)
            .with_protocol(Protocol::HttpBinary)
            .with_timeout(LONGEST)
            // The library's own repetitions would block the thread between them.
            .with_retry_policy(RetryPolicy::disabled())
            .build()
            .map_err(|error| error.to_string())?;
        let own = [
            KeyValue::new("service.name", NAME),
            KeyValue::new("service.version", VERSION),
        ];
        exporter.set_resource(&Resource::builder_empty().with_schema_url(own, CONVENTIONS).build());
        Ok(Self {
            exporter,
            waiting: VecDeque::new(),
            resting: None,
            attempts: 0,
        })
    }

    /// Sends spans of facts until there are no more facts to come, and then what still waits.
    pub(super) async fn run(mut self, mut facts: mpsc::Receiver<Arc<Entry>>, mut weaver: Weaver) {
        let mut ticks = interval(GATHER);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                fact = facts.recv() => {
                    let Some(fact) = fact else { break };
                    self.waiting.extend(weaver.take(&fact));
                    if self.waiting.len() < MOST_TOGETHER {
                        continue;
                    }
                }
                _ = ticks.tick() => {}
            }
            self.send_some().await;
        }
        self.resting = None;
        while !self.waiting.is_empty() && self.resting.is_none() {
            self.send_some().await;
        }
    }

    /// Sends what was gathered, unless the last delivery failed a moment ago.
    async fn send_some(&mut self) {
        let surplus = self.waiting.len().saturating_sub(MOST_WAITING);
        self.waiting.drain(..surplus);
        if self.waiting.is_empty() || self.resting.is_some_and(|until| Instant::now() < until) {
            return;
        }
        let count = self.waiting.len().min(MOST_TOGETHER);
        let batch: Vec<SpanData> = self.waiting.range(..count).cloned().collect();
        let reason = match timeout(LONGEST, self.exporter.export(batch)).await {
            Ok(Ok(())) => {
                if self.attempts > 0 {
                    tracing::info!("traces are sent again");
                }
                self.waiting.drain(..count);
                (self.attempts, self.resting) = (0, None);
                return;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no answer within {} seconds", LONGEST.as_secs()),
        };
        if self.attempts == 0 {
            tracing::warn!("traces could not be sent, they are sent again for a while: {reason}");
        }
        self.attempts += 1;
        self.resting = Some(Instant::now() + REST);
        if self.attempts >= MOST_ATTEMPTS {
            self.waiting.drain(..count);
            self.attempts = 0;
        }
    }
}

/// The program's own client, with its certificates and bounds, for the library that writes OTLP.
#[derive(Debug)]
struct Client(reqwest::Client);

#[async_trait]
impl HttpClient for Client {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let request = reqwest::Request::try_from(request)?;
        let mut answered = self.0.execute(request).await.map_err(|error| http::reason(&error))?;
        let body = read_body(&mut answered, LONGEST_ANSWER).await;
        let body = body.map_err(|_| "the answer did not come whole, or is too long")?;
        let mut response = Response::new(body);
        *response.status_mut() = answered.status();
        *response.headers_mut() = answered.headers().clone();
        Ok(response)
    }
}
