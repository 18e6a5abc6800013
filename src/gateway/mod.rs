//! The way out of a container: an HTTP proxy at the worker's end of a stream from inside.
//!
//! A container has no network except its own loopback. The program that listens there
//! (`coding-agent-executor tunnel`) multiplexes its connections over the stdin and stdout of an
//! attached process; here each of them is served as by an HTTP proxy, judged by the
//! [`Policy`](crate::egress::Policy), and connected. No port is opened on the worker.
//!
//! Programs in the container can send any bytes to this end, so everything is bounded: streams,
//! heads, waits, silence.

mod dialing; // connections to permitted destinations
pub mod flow; // counts bytes
mod forwarding; // forwards a plain HTTP request
pub mod gate; // whether the way out is open
mod idle; // idle timeout
pub mod ledger; // refusals and traffic of a run
mod own_address; // addresses of the worker's machine
mod proxy; // serves one stream as an HTTP proxy
mod tunnel; // tunnels, whose first bytes are judged
pub mod upstream; // the proxy that the worker itself is behind

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio_util::compat::{FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};

use crate::egress::{MOST_CONNECTIONS, Policy};
use gate::Gate;
use ledger::Ledger;
use upstream::Upstream;

/// Twice what the inner end opens: it notices the end of a stream a moment before this end does.
const MOST_STREAMS: usize = 2 * MOST_CONNECTIONS;

/// Receive window of one stream in bytes.
const WINDOW: usize = 256 * 1024;

/// The outer end of one run's way out. Outlives the streams that it serves.
pub struct Gateway {
    policy: Policy,
    upstream: Arc<Upstream>,
    gate: Gate,
    ledger: Arc<Ledger>,
}

impl Gateway {
    pub fn new(policy: Policy, upstream: Arc<Upstream>, gate: Gate, ledger: Arc<Ledger>) -> Self {
        Self {
            policy,
            upstream,
            gate,
            ledger,
        }
    }

    /// Serves until the stream ends or violates the protocol; every connection made over it ends
    /// with it, or with this future.
    pub async fn serve(
        self: Arc<Self>,
        reader: impl AsyncRead + Send + Unpin,
        writer: impl AsyncWrite + Send + Unpin,
    ) -> Result<(), yamux::ConnectionError> {
        let mut config = yamux::Config::default();
        config.set_max_num_streams(MOST_STREAMS);
        config.set_max_connection_receive_window(Some(MOST_STREAMS * WINDOW));
        let stream = tokio::io::join(reader, writer).compat();
        let mut connection = yamux::Connection::new(stream, config, yamux::Mode::Server);
        let mut served = JoinSet::new();
        loop {
            tokio::select! {
                next = poll_fn(|context| connection.poll_next_inbound(context)) => match next {
                    Some(Ok(stream)) => {
                        served.spawn(proxy::serve(Arc::clone(&self), stream.compat()));
                    }
                    Some(Err(error)) => return Err(error),
                    None => return Ok(()),
                },
                // Without this, finished tasks would pile up.
                Some(_) = served.join_next() => {}
            }
        }
    }
}
