//! The stream between a container and the gateway, which is reopened when it is lost.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::egress::READY;
use crate::environment::{Container, During, EXECUTOR, EnvironmentError, Network};
use crate::executor::Channel;
use crate::gateway::Gateway;
use crate::gateway::gate::{Gate, HeldOpen};
use crate::gateway::ledger::News;
use crate::journal::fact::Fact;
use crate::journal::fact::egress::{Allowed, Refused};
use crate::workspace::streams::multiplexer::Unopened;

/// Longest time until the inner end listens: a previous one may have to end first.
const OPENING: Duration = Duration::from_secs(30);

/// Delay before a lost stream is reopened, doubled each time up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Most losses and failures in a row; after so many something in the container must be ending it.
/// Those of an engine or a cluster that is away do not count: it comes back.
const MOST_TRIES: u32 = 30;

/// Duration after which a stream counts as stable, and the count of tries restarts.
const GOOD: Duration = Duration::from_mins(1);

/// The network access of one container. It closes when this is dropped.
pub struct ContainerTunnel {
    gate: Gate,
    _serving: AbortOnDropHandle<()>,
}

/// The end of the tunnel in the container, before it is served.
pub(crate) struct TunnelEnd {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    writer: Box<dyn AsyncWrite + Send + Unpin>,
}

impl ContainerTunnel {
    /// Serves requests of programs in the container from now on.
    pub(crate) fn serve(container: Container, gateway: Arc<Gateway>, gate: Gate, inner: TunnelEnd) -> Self {
        let serving = tokio::spawn(keep_open(container, gateway, inner));
        Self {
            gate,
            _serving: AbortOnDropHandle::new(serving),
        }
    }

    /// Opens the network for set-up commands until the returned guard is dropped. No effect if the
    /// configuration leaves the network open anyway.
    pub(crate) fn during_set_up(&self) -> HeldOpen {
        self.gate.hold_open()
    }
}

/// Returns the gate of a container before its set-up commands run.
pub(crate) fn gate(network: &Network) -> Gate {
    match network.during {
        During::Always => Gate::always_open(),
        During::Setup => Gate::closed(),
    }
}

/// Returns the journal entry for news of the gateway.
pub(crate) fn fact(news: News<'_>) -> Fact {
    match news {
        News::Refused(refusal) => Fact::EgressRefused(Refused {
            host: refusal.destination.host.to_string(),
            port: refusal.destination.port,
            reason: refusal.what(),
        }),
        News::Allowed { host, port, traffic } => Fact::EgressAllowed(Allowed {
            host,
            port,
            connections: traffic.connections,
            sent: traffic.sent,
            received: traffic.received,
        }),
    }
}

impl TunnelEnd {
    /// Opens the inner end over the channel, or else like [`Self::open`].
    pub(crate) async fn over(channel: Option<Unopened>, container: &Container) -> Result<Self, EnvironmentError> {
        if let Some(channel) = channel {
            match timeout(OPENING, Self::listening(channel)).await {
                Ok(Ok(inner)) => return Ok(inner),
                // An attached process can say why it does not listen.
                failed => tracing::info!(
                    container = container.id(),
                    "the way out has no channel: {:?}",
                    failed.err()
                ),
            }
        }
        Self::open(container).await
    }

    async fn listening(channel: Unopened) -> io::Result<Self> {
        let (mut reader, writer) = tokio::io::split(channel.open(&Channel::Tunnel).await?);
        let mut line = vec![0; READY.len() + 1];
        reader.read_exact(&mut line).await?;
        if line != format!("{READY}\n").as_bytes() {
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
        })
    }

    /// Starts the inner end as an attached process and waits until it listens.
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
            // The process printed the reason, or the container died.
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

/// Serves the stream and reopens it when it is lost, because a process in the container ended it or
/// the engine was restarted.
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
            tries += 1;
        }
        sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
        next = match TunnelEnd::open(&container).await {
            Ok(inner) => Some(inner),
            // The next tool call notices it, and the container is replaced.
            Err(EnvironmentError::ContainerLost { .. }) => return,
            Err(error @ (EnvironmentError::EngineUnavailable { .. } | EnvironmentError::ClusterUnavailable { .. })) => {
                tracing::debug!(container = container.id(), "the way out waits: {error}");
                None
            }
            Err(error) => {
                tries += 1;
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
