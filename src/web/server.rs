//! Connections: accepting them, and what bounds them.
//!
//! Guarantees: at most [`MOST_CONNECTIONS`] at once; who sends no request, or does not take what
//! was written, is cut off, so that slow and dead peers cost bounded memory and hold up nobody.

use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Connections at once; more wait until one ends.
const MOST_CONNECTIONS: usize = 512;
/// Time for the head of a request, from the connection or the last answer on.
const HEAD: Duration = Duration::from_secs(30);
/// Time in which a peer must take something of what is written.
const STALL: Duration = Duration::from_secs(30);
/// Time for open requests when the server ends.
const FAREWELL: Duration = Duration::from_secs(2);
/// Pause after a connection could not be accepted, because there are too many open files, say.
const BREATH: Duration = Duration::from_millis(200);

/// The address of whoever sent a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) SocketAddr);

/// Answers requests until `stop`.
pub(super) async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let connections = TaskTracker::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!("a connection could not be accepted: {error}");
                sleep(BREATH).await;
                continue;
            }
        };
        let router = router.clone().layer(axum::Extension(Peer(address)));
        let stop = stop.clone();
        connections.spawn(async move {
            answer(stream, router, stop).await;
            drop(place);
        });
    }
    connections.close();
    let _ = timeout(FAREWELL, connections.wait()).await;
}

async fn answer(stream: TcpStream, router: Router, stop: CancellationToken) {
    let stream = Bounded { stream, stalled: None };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = stop.cancelled() => {
            connection.as_mut().graceful_shutdown();
            match timeout(FAREWELL, connection).await {
                Ok(ended) => ended,
                Err(_) => return,
            }
        }
    };
    if let Err(error) = ended {
        tracing::debug!("a connection ended: {error}");
    }
}

/// A stream whose writes fail when the peer takes nothing for [`STALL`].
struct Bounded {
    stream: TcpStream,
    /// Runs since the peer takes nothing.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl Bounded {
    /// Fails a write that the peer has not taken for too long.
    fn judge<T>(&mut self, context: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if polled.is_ready() {
            self.stalled = None;
            return polled;
        }
        let deadline = self
            .stalled
            .get_or_insert_with(|| Box::pin(tokio::time::sleep_until(Instant::now() + STALL)));
        match deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.judge(context, polled)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_flush(context);
        self.judge(context, polled)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let polled = Pin::new(&mut self.stream).poll_shutdown(context);
        self.judge(context, polled)
    }
}
