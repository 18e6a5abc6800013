//! Ends a connection on which no byte moves in either direction for too long.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// Fails reads with [`io::ErrorKind::TimedOut`] once nothing was read or written for `patience`.
pub(super) struct Idle<S> {
    stream: S,
    patience: Duration,
    deadline: Pin<Box<Sleep>>,
}

impl<S> Idle<S> {
    pub(super) fn new(stream: S, patience: Duration) -> Self {
        Self {
            stream,
            patience,
            deadline: Box::pin(sleep(patience)),
        }
    }

    fn has_moved(&mut self) {
        self.deadline.as_mut().reset(Instant::now() + self.patience);
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Idle<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(read) = Pin::new(&mut self.stream).poll_read(context, buffer) {
            self.has_moved();
            return Poll::Ready(read);
        }
        // A copy loop always has a pending read, so checking the deadline here is enough.
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Idle<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if written.is_ready() {
            self.has_moved();
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    #[tokio::test]
    async fn silence_ends_it_and_whatever_moves_does_not() {
        let patience = Duration::from_hours(1);
        let (near, mut far) = duplex(64);
        let mut idle = Idle::new(near, patience);
        for _ in 0..3 {
            let before = run_out(&mut idle);
            far.write_all(b"x").await.unwrap();
            idle.read_exact(&mut [0]).await.unwrap();
            assert!(idle.deadline.deadline() >= before + patience);
            let before = run_out(&mut idle);
            idle.write_all(b"y").await.unwrap();
            assert!(idle.deadline.deadline() >= before + patience);
        }
        run_out(&mut idle);
        let error = idle.read(&mut [0]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    /// Lets the patience run out now, and returns this moment.
    fn run_out<S>(idle: &mut Idle<S>) -> Instant {
        let now = Instant::now();
        idle.deadline.as_mut().reset(now);
        now
    }
}
