//! Splits the output of an attached process: stdout as a reader, and the end of stderr.
//!
//! There is no background task: reading stdout drives the connection, so a slow reader slows the
//! process down and nothing piles up in between.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bollard::container::LogOutput;
use bytes::{Buf, Bytes};
use futures_util::Stream;
use tokio::io::{AsyncRead, ReadBuf};

/// The engine's output stream, in which each part is marked as stdout or stderr.
pub(super) type Parts = Pin<Box<dyn Stream<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;

/// Maximum bytes of stderr that are kept.
const STDERR_KEPT: usize = 64 * 1024;

/// The stdout of an attached process. Parts of stderr go to the [`StderrTail`] meanwhile.
pub(super) struct Output {
    parts: Parts,
    current: Bytes,
    stderr: Arc<Mutex<StderrTail>>,
}

/// The last bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct StderrTail {
    bytes: VecDeque<u8>,
}

impl Output {
    /// Returns stdout, and the tail of stderr, which is complete once stdout was read to its end.
    pub(super) fn new(parts: Parts) -> (Self, Arc<Mutex<StderrTail>>) {
        let stderr = Arc::new(Mutex::new(StderrTail::default()));
        let output = Self {
            parts,
            current: Bytes::new(),
            stderr: Arc::clone(&stderr),
        };
        (output, stderr)
    }
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        while self.current.is_empty() {
            match ready!(self.parts.as_mut().poll_next(context)) {
                None => return Poll::Ready(Ok(())),
                Some(Err(error)) => return Poll::Ready(Err(io::Error::other(error))),
                Some(Ok(LogOutput::StdOut { message })) => self.current = message,
                // An unmarked part is an error of the engine or the rest of a part that broke off.
                Some(Ok(LogOutput::StdErr { message } | LogOutput::Console { message })) => {
                    self.stderr
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(&message);
                }
                Some(Ok(LogOutput::StdIn { .. })) => {}
            }
        }
        let length = self.current.len().min(buffer.remaining());
        buffer.put_slice(&self.current[..length]);
        self.current.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl StderrTail {
    fn push(&mut self, new: &[u8]) {
        let new = &new[new.len().saturating_sub(STDERR_KEPT)..];
        let excess = (self.bytes.len() + new.len()).saturating_sub(STDERR_KEPT);
        self.bytes.drain(..excess);
        self.bytes.extend(new);
    }

    pub(crate) fn text(&mut self) -> String {
        String::from_utf8_lossy(self.bytes.make_contiguous()).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;
    use tokio::io::AsyncReadExt;

    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "an item of the engine's stream")]
    fn part(of: fn(Bytes) -> LogOutput, text: &'static str) -> Result<LogOutput, bollard::errors::Error> {
        Ok(of(Bytes::from_static(text.as_bytes())))
    }

    #[tokio::test]
    async fn the_two_streams_are_told_apart_and_empty_parts_are_no_end() {
        let out = |message| LogOutput::StdOut { message };
        let err = |message| LogOutput::StdErr { message };
        let parts = [
            part(out, "a"),
            part(err, "x"),
            part(out, ""),
            part(out, "bc"),
            part(err, "y"),
        ];
        let (mut output, stderr) = Output::new(Box::pin(stream::iter(parts)));
        let mut text = String::new();
        output.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "abc");
        assert_eq!(stderr.lock().unwrap().text(), "xy");
    }

    #[test]
    fn of_a_long_stderr_the_end_is_kept() {
        let mut tail = StderrTail::default();
        tail.push(&vec![b'a'; STDERR_KEPT - 1]);
        tail.push(b"bcd");
        assert_eq!(tail.bytes.len(), STDERR_KEPT);
        assert!(tail.text().ends_with("abcd"));
        tail.push(&[vec![b'e'; STDERR_KEPT], b"f".to_vec()].concat());
        assert_eq!(tail.bytes.len(), STDERR_KEPT);
        assert!(tail.text().starts_with('e') && tail.text().ends_with("ef"));
    }
}
