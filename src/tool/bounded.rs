//! Bounds what a server sends without being asked.
//!
//! The stream of a server fails when it sends more than answers and the notes beside them can be.
//! Each message becomes a task and each request an answer that waits to be written, so a stream of
//! small messages fills the memory of the reader whatever the largest message is. The allowance is
//! renewed with each call and refills slowly in between, so that a server may report progress for
//! hours and change its list of tools as often as it likes.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

/// Messages that are accepted at once, and in each second that passes.
const MESSAGES: f64 = 1_000.0;
const MESSAGES_PER_SECOND: f64 = 200.0;
/// Bytes, likewise; four concurrent calls may each be answered with the longest message.
const BYTES: f64 = 64.0 * 1024.0 * 1024.0;
const BYTES_PER_SECOND: f64 = 256.0 * 1024.0;

/// The rest of what a server may send. Clones share it.
#[derive(Debug, Clone)]
pub(super) struct Allowance(Arc<Mutex<Left>>);

#[derive(Debug, Clone)]
struct Left {
    messages: f64,
    bytes: f64,
    at: Instant,
}

impl Allowance {
    pub(super) fn full() -> Self {
        Self(Arc::new(Mutex::new(Left::full())))
    }

    /// Refills the allowance, because a request was sent and may be answered.
    pub(super) fn renew(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Left::full();
    }

    /// Takes `said` from the allowance; tells whether it was enough.
    fn covers(&self, said: &[u8]) -> bool {
        let lines = said.split(|byte| *byte == b'\n').count() - 1;
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        left.take(lines, said.len(), Instant::now())
    }
}

impl Left {
    fn full() -> Self {
        Self {
            messages: MESSAGES,
            bytes: BYTES,
            at: Instant::now(),
        }
    }

    /// Takes messages and bytes away at `now`; tells whether there were enough.
    fn take(&mut self, messages: usize, bytes: usize, now: Instant) -> bool {
        let seconds = (now - self.at).as_secs_f64();
        self.at = now;
        self.messages = (self.messages + seconds * MESSAGES_PER_SECOND).min(MESSAGES) - count(messages);
        self.bytes = (self.bytes + seconds * BYTES_PER_SECOND).min(BYTES) - count(bytes);
        self.messages >= 0.0 && self.bytes >= 0.0
    }
}

/// Converts a count. Pieces of a stream are far too small to be rounded.
fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

/// Reads a server's stream until the allowance is used up; then the stream fails, and the session
/// with it.
pub(super) struct Bounded<Reader> {
    reader: Reader,
    allowance: Allowance,
    server: String,
}

impl<Reader> Bounded<Reader> {
    pub(super) fn new(reader: Reader, allowance: Allowance, server: &str) -> Self {
        Self {
            reader,
            allowance,
            server: server.to_owned(),
        }
    }
}

impl<Reader: AsyncRead + Unpin> AsyncRead for Bounded<Reader> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.reader).poll_read(context, buffer))?;
        if self.allowance.covers(&buffer.filled()[before..]) {
            return Poll::Ready(Ok(()));
        }
        // The reader of a failed stream gets nothing of this piece.
        buffer.set_filled(before);
        tracing::warn!(
            target: "mcp",
            server = self.server,
            "the session is ended: the server says more than it was asked for"
        );
        Poll::Ready(Err(io::Error::other("the server says more than it was asked for")))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt;

    use super::*;

    async fn read(said: &[u8], allowance: &Allowance) -> io::Result<usize> {
        let mut sink = Vec::new();
        Bounded::new(said, allowance.clone(), "x").read_to_end(&mut sink).await
    }

    #[test]
    fn time_allows_more_up_to_the_first_allowance() {
        let mut left = Left::full();
        let begun = left.at;
        assert!(left.take(1_000, 3_000, begun));
        assert!(!left.clone().take(1, 3, begun));
        assert!(left.clone().take(200, 600, begun + Duration::from_secs(1)));
        assert!(!left.clone().take(201, 603, begun + Duration::from_secs(1)));
        assert!(!left.take(1_001, 3_000, begun + Duration::from_hours(1)));
    }

    #[test]
    fn few_messages_may_not_be_of_any_size() {
        let mut left = Left::full();
        let begun = left.at;
        assert!(left.take(1, 64 * 1024 * 1024, begun));
        assert!(!left.take(1, 1024 * 1024, begun));
    }

    #[tokio::test]
    async fn the_stream_of_a_server_that_says_too_much_fails_and_a_call_allows_more() {
        let allowance = Allowance::full();
        let said = "{}\n".repeat(1_500);
        assert!(read(said.as_bytes(), &allowance).await.is_err());
        allowance.renew();
        assert_eq!(read(b"{}\n", &allowance).await.unwrap(), 3);
    }
}
