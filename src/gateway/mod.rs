//! The way out of a container: the outer end of a stream that comes from inside.
//!
//! A container has no network but its own loopback. What listens there (`coding-agent-executor
//! tunnel`) hands each connection on as one stream among many over the stdin and stdout of an
//! attached process; here every such stream is spoken to as an HTTP proxy is, judged by the
//! [`Policy`](crate::egress::Policy), and connected. Nothing listens on the worker.
//!
//! Whoever works in the container can speak to this end as he likes. So everything is bounded:
//! streams, heads, waits, silence.

mod dialing; // from a permit to a connection
pub mod flow; // bytes are counted
mod forwarding; // a plain request, sent on
pub mod gate; // whether the way out is open
mod idle; // a connection on which nothing moves ends
pub mod ledger; // what was refused, and what went out
mod own_address; // what this machine is reached by
mod proxy; // one stream: requests in, decisions, answers out
mod tunnel; // the bytes of a tunnel, once the first were judged
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

/// More than the inner end opens: it knows of the end of a stream a moment before this end does.
const MOST_STREAMS: usize = 2 * MOST_CONNECTIONS;

/// Most bytes of one stream that wait to be read here.
const WINDOW: usize = 256 * 1024;

/// The outer end of one run's way out. Survives the streams it is reached over.
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

    /// Serves until the stream ends or breaks the protocol; every connection made over it ends with
    /// it, or with this future.
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
                // So that those that ended do not pile up.
                Some(_) = served.join_next() => {}
            }
        }
    }
}
