//! Container and gateway together: the stream between the two is opened, and opened again when it
//! is lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::egress::READY;
use crate::environment::container::Container;
use crate::environment::specification::EXECUTOR;
use crate::environment::{During, EnvironmentError, Network};
use crate::gateway::Gateway;
use crate::gateway::gate::{Gate, HeldOpen};
use crate::gateway::ledger::News;
use crate::journal::fact::Fact;

/// Longest time until the inner end listens: the one before may have to end first.
const OPENING: Duration = Duration::from_secs(30);

/// Between the loss of the stream and the next try, doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Most tries in a row. A container that ended its way out so often wants none.
const MOST_TRIES: u32 = 30;

/// A stream that held so long was a good one.
const GOOD: Duration = Duration::from_mins(1);

/// The way out of one container. It closes when this is dropped.
pub struct ContainerTunnel {
    gate: Gate,
    _serving: AbortOnDropHandle<()>,
}

/// The inner end, before it is served.
pub(crate) struct TunnelEnd {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl ContainerTunnel {
    /// Serves from now on what programs in the container ask the inner end for.
    pub(crate) fn serve(container: Container, gateway: Arc<Gateway>, gate: Gate, inner: TunnelEnd) -> Self {
        let serving = tokio::spawn(keep_open(container, gateway, inner));
        Self {
            gate,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    /// Lets this container out while set-up commands run in it, until what is returned is dropped.
    /// Where the configuration lets containers out always, it changes nothing.
    pub(crate) fn during_set_up(&self) -> HeldOpen {
        self.gate.hold_open()
    }
}

/// Returns the gate of a container that does not run set-up commands yet.
pub(crate) fn gate(network: &Network) -> Gate {
    match network.during {
        During::Always => Gate::always_open(),
        During::Setup => Gate::closed(),
    }
}

/// Returns how the journal says it.
pub(crate) fn fact(news: News<'_>) -> Fact {
    match news {
        News::Refused(refusal) => Fact::EgressRefused {
            host: refusal.destination.host.to_string(),
            port: refusal.destination.port,
            reason: refusal.what(),
        },
        News::Allowed { host, port, traffic } => Fact::EgressAllowed {
            host,
            port,
            connections: traffic.connections,
            sent: traffic.sent,
            received: traffic.received,
        },
    }
}

impl TunnelEnd {
    /// Starts the inner end and waits until it listens.
    pub(crate) async fn open(container: &Container) -> Result<Self, EnvironmentError> {
        let mut attached = container.attach(&[EXECUTOR, "tunnel"], &[]).await?;
        let mut line = vec![0; READY.len() + 1];
        let heard = timeout(OPENING, attached.stdout.read_exact(&mut line)).await;
        if matches!(heard, Ok(Ok(_))) && line == format!("{READY}\n").as_bytes() {
            return Ok(Self {
                reader: attached.stdout,
                writer: attached.stdin,
            });
        }
        let reason = if heard.is_err() {
            format!("it did not listen within {} s", OPENING.as_secs())
        } else {
            // It said why, or the container died.
            drop(attached.stdin);
            match timeout(OPENING, attached.ending).await {
                Ok(ending) => ending?.stderr.trim().to_owned(),
                Err(_) => "it said something that was not expected".to_owned(),
            }
        };
        Err(EnvironmentError::Unexpected {
            what: "opening the container's way out".to_owned(),
            reason,
        })
    }
}

/// Serves, and begins again when the stream is lost: a process in the container ended it, or the
/// engine was away.
async fn keep_open(container: Container, gateway: Arc<Gateway>, first: TunnelEnd) {
    let (mut next, mut tries, mut pause) = (Some(first), 0, FIRST_PAUSE);
    while tries < MOST_TRIES {
        if let Some(inner) = next.take() {
            let begun = Instant::now();
            let ended = Arc::clone(&gateway).serve(inner.reader, inner.writer).await;
            tracing::debug!(container = container.id(), "the way out was lost: {ended:?}");
            if begun.elapsed() >= GOOD {
                (tries, pause) = (0, FIRST_PAUSE);
            }
        }
        tries += 1;
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        next = match TunnelEnd::open(&container).await {
            Ok(inner) => Some(inner),
            // Whoever works in it notices, and another one takes its place.
            Err(EnvironmentError::ContainerLost { .. }) => return,
            Err(error) => {
                tracing::warn!(
                    container = container.id(),
                    "the way out could not be opened again: {error}"
                );
                None
            }
        };
    }
    tracing::warn!(
        container = container.id(),
        "the way out was lost {MOST_TRIES} times in a row and stays closed"
    );
}
