//! The inner end of the way out: listens on the container's loopback and hands each connection on
//! as one stream over stdin and stdout.
//!
//! It decides nothing: what may be reached is decided at the other end, outside of the container.
//! It ends with its stdin.

use std::future::poll_fn;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use anyhow::Context;
use rmcp::transport::stdio_pipes;
use tokio::io::{AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::compat::{FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};

use crate::egress::{MOST_CONNECTIONS, PROXY_PORT, READY};

/// How long the one before may still have the port: it ends when its worker's end of the stream
/// does.
const BIND_PATIENCE: Duration = Duration::from_secs(20);
const BIND_PAUSE: Duration = Duration::from_millis(50);

/// Longest life of a connection, a little longer than the other end gives it.
const LIFE: Duration = Duration::from_mins(65);

/// Serves until stdin ends.
pub async fn tunnel() -> anyhow::Result<()> {
    let listener = listen().await?;
    let (reader, mut writer) = stdio_pipes();
    writer.write_all(format!("{READY}\n").as_bytes()).await?;
    writer.flush().await?;
    let stream = tokio::io::join(reader, writer).compat();
    let mut connection = yamux::Connection::new(stream, yamux::Config::default(), yamux::Mode::Client);
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    let mut served = JoinSet::new();
    // Accepted, and without a stream yet.
    let mut waiting = None;
    loop {
        tokio::select! {
            // Both in one: they need the same connection, and either may be what makes it go on.
            event = poll_fn(|context| {
                match connection.poll_next_inbound(context) {
                    // Nobody opens streams from outside.
                    Poll::Ready(Some(Ok(_))) => context.waker().wake_by_ref(),
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(error)),
                    Poll::Ready(None) => return Poll::Ready(Ok(None)),
                    Poll::Pending => {}
                }
                if waiting.is_none() {
                    return Poll::Pending;
                }
                connection.poll_new_outbound(context).map_ok(Some)
            }) => match event.context("the other end broke off")? {
                None => return Ok(()),
                Some(stream) => if let Some((near, place)) = waiting.take() {
                    served.spawn(async move {
                        let _place = place;
                        hand_on(near, stream).await;
                    });
                },
            },
            accepted = accept(&listener, &places), if waiting.is_none() => waiting = Some(accepted),
            // So that those that ended do not pile up.
            Some(_) = served.join_next() => {}
        }
    }
}

/// Waits for a place first: who finds none waits in the kernel's queue, and is refused by it when
/// that is full, too.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, Option<tokio::sync::OwnedSemaphorePermit>) {
    // Fails only when it is closed, and nobody does that.
    let place = Arc::clone(places).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((near, _)) => return (near, place),
            // Out of file descriptors, say: it passes.
            Err(_) => sleep(BIND_PAUSE).await,
        }
    }
}

async fn hand_on(mut near: TcpStream, stream: yamux::Stream) {
    let _ = near.set_nodelay(true);
    let mut far = stream.compat();
    // Whether it ended well is between the two ends.
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
