//! Traces for `OpenTelemetry`: each run as a trace, which is sent to a collector by OTLP over HTTP.
//!
//! Spans are made of the facts of the journal that this process records, when what they describe
//! has ended: one for the run, one for each stage, each reply of a model, each call of a tool and
//! each start of an environment. A stage that is put down and taken up again has a span for each
//! time. Names and attributes keep to the conventions for generative AI. Nothing that a model, a
//! person or a tool wrote is in them.
//!
//! Guarantees: the work never waits for a collector and never fails for it; what waits to be sent
//! is bounded, and the oldest is left out first. A run that several processes work on is one trace,
//! since its id is the run's. A killed process takes the spans of its last seconds along.
//!
//! The feature `otlp` of the build, which is on unless it is left out, has what sends.

#[cfg(feature = "otlp")]
mod spans; // spans, made of facts
#[cfg(feature = "otlp")]
mod sending; // spans on their way to the collector

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use secrecy::SecretString;
use serde::Deserialize;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::certificates::Trust;
use crate::journal::Journal;
use crate::llm;

/// Whether this build can send traces.
pub const IS_BUILT_IN: bool = cfg!(feature = "otlp");

/// Time for the last spans when the program ends.
const FAREWELL: Duration = Duration::from_secs(5);

/// Where traces go.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Address of a collector that takes OTLP over HTTP; `/v1/traces` is added where it has no
    /// path. Without it no traces are made.
    pub endpoint: Option<String>,
    /// Headers of each request, such as one with a key.
    #[schemars(with = "BTreeMap<String, String>", extend("default" = {}))]
    pub headers: BTreeMap<String, SecretString>,
    /// Whom the connection trusts, when the top-level `ca_file` was read.
    #[serde(skip)]
    pub trust: Trust,
}

/// Sends traces while the program runs.
pub struct Traces(JoinHandle<()>);

impl Traces {
    /// Makes traces of what `journal` records from now on, if the configuration has a place for
    /// them. Contacts nobody yet.
    #[cfg(feature = "otlp")]
    pub fn start(config: &Config, models: &llm::config::Config, journal: &Journal) -> Option<Self> {
        let endpoint = config.address()?;
        match sending::Sender::new(&endpoint, config) {
            Ok(sender) => {
                let weaver = spans::Weaver::new(models);
                Some(Self(tokio::spawn(sender.run(journal.overhear(), weaver))))
            }
            Err(reason) => {
                tracing::error!("no traces are sent: {reason}");
                None
            }
        }
    }

    /// Makes nothing: the configuration refuses a place for traces in such a build.
    #[cfg(not(feature = "otlp"))]
    pub fn start(_: &Config, _: &llm::config::Config, _: &Journal) -> Option<Self> {
        None
    }

    /// Sends what there still is, for a moment. Call this once the journal is closed.
    pub async fn end(self) {
        if timeout(FAREWELL, self.0).await.is_err() {
            tracing::warn!("the last spans were not sent: the collector does not answer");
        }
    }
}

impl Config {
    /// Returns the address that traces are sent to.
    #[cfg(feature = "otlp")]
    fn address(&self) -> Option<String> {
        let endpoint = self.endpoint.as_deref()?;
        let mut url = url::Url::parse(endpoint).ok()?;
        if url.path() == "/" {
            url.set_path("/v1/traces");
        }
        Some(url.into())
    }
}
