//! Counts the bytes of a connection, and reports them when it ends.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The number of connections and bytes of one or several connections.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    pub connections: u64,
    /// Bytes from the container to the host.
    pub sent: u64,
    /// Bytes from the host to the container.
    pub received: u64,
}

impl Traffic {
    pub(super) fn add(&mut self, other: Self) {
        self.connections += other.connections;
        self.sent += other.sent;
        self.received += other.received;
    }
}

/// A stream to a remote host that calls `report` once, with its traffic, when it is dropped.
pub(super) struct Counted<S, R: Fn(Traffic)> {
    stream: S,
    traffic: Traffic,
    report: R,
}

impl<S, R: Fn(Traffic)> Counted<S, R> {
    pub(super) fn new(stream: S, report: R) -> Self {
        Self {
            stream,
            traffic: Traffic {
                connections: 1,
                ..Traffic::default()
            },
            report,
        }
    }
}

impl<S, R: Fn(Traffic)> Drop for Counted<S, R> {
    fn drop(&mut self) {
        (self.report)(self.traffic);
    }
}

impl<S: AsyncRead + Unpin, R: Fn(Traffic) + Unpin> AsyncRead for Counted<S, R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        self.traffic.received += (buffer.filled().len() - before) as u64;
        read
    }
}

impl<S: AsyncWrite + Unpin, R: Fn(Traffic) + Unpin> AsyncWrite for Counted<S, R> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if let Poll::Ready(Ok(count)) = written {
            self.traffic.sent += count as u64;
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
