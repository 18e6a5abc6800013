//! The inner end of the tunnel out of the container: listens on its loopback, and forwards each
//! connection as one stream over stdin and stdout, or over one channel of the container's own.
//!
//! It decides nothing: the other end, outside of the container, decides what may be reached. It
//! ends with its input.

use std::future::poll_fn;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anyhow::Context;
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::compat::{FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};

use crate::egress::{MOST_CONNECTIONS, PROXY_PORT, READY};

/// Time for the previous tunnel to release the port: it ends when its worker's end of the stream
/// does.
const BIND_PATIENCE: Duration = Duration::from_secs(20);
const BIND_PAUSE: Duration = Duration::from_millis(50);

/// Longest life of a connection, a little longer than at the other end.
const LIFE: Duration = Duration::from_mins(65);

/// Serves connections over stdin and stdout until stdin ends.
pub async fn tunnel() -> anyhow::Result<()> {
    let (reader, writer) = stdio_pipes();
    serve(reader, writer).await
}

/// Serves connections until `reader` ends.
pub(super) async fn serve(
    reader: impl AsyncRead + Send + Unpin,
    mut writer: impl AsyncWrite + Send + Unpin,
) -> anyhow::Result<()> {
    let listener = listen().await?;
    writer.write_all(format!("{READY}\n").as_bytes()).await?;
    writer.flush().await?;
    let stream = tokio::io::join(reader, writer).compat();
    let mut connection = yamux::Connection::new(stream, yamux::Config::default(), yamux::Mode::Client);
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut served = JoinSet::new();
    // A connection that was accepted, and has no stream yet.
    let mut waiting = None;
    loop {
        tokio::select! {
            // Both are polled together: they need the same connection, and either may let it go on.
            event = poll_fn(|context| {
                match connection.poll_next_inbound(context) {
                    // Streams from the other end are not expected, and are dropped.
                    Poll::Ready(Some(Ok(_))) => context.waker().wake_by_ref(),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(None) => return Poll::Ready(Ok(None)),
                    Poll::Pending => {}
                }
                if waiting.is_none() {
                    return Poll::Pending;
                }
                connection.poll_new_outbound(context).map_ok(Some)
            }) => match event.context("the connection to the worker broke")? {
                None => return Ok(()),
                Some(stream) => if let Some((near, place)) = waiting.take() {
                    served.spawn(async move {
                        let _place = place;
                        hand_on(near, stream).await;
                    });
                },
            },
            accepted = accept(&listener, &places), if waiting.is_none() => waiting = Some(accepted),
            // Ended tasks are removed, so that they do not pile up.
            Some(_) = served.join_next() => {}
        }
    }
}

/// Accepts a connection when a place is free. Until then it waits in the kernel's queue, and is
/// refused if that is full, too.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, Option<tokio::sync::OwnedSemaphorePermit>) {
    // Fails only if the semaphore is closed, which nobody does.
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((near, _)) => return (near, place),
            // Such as having no file descriptors left: it passes.
            Err(_) => sleep(BIND_PAUSE).await,
        }
    }
}

async fn hand_on(mut near: TcpStream, stream: yamux::Stream) {
    let _ = near.set_nodelay(true);
    let mut far = stream.compat();
    // Whether it ended well matters only to the two ends.
    let _ = timeout(LIFE, copy_bidirectional(&mut near, &mut far)).await;
    let _ = far.shutdown().await;
}

async fn listen() -> anyhow::Result<TcpListener> {
    let deadline = Instant::now() + BIND_PATIENCE;
    loop {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && Instant::now() < deadline => {
                sleep(BIND_PAUSE).await;
            }
            bound => return bound.with_context(|| format!("port {PROXY_PORT} of the container cannot be listened on")),
        }
    }
}
