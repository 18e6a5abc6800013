//! The streams that a container needs at once, over the one link with its executor: tools, way out
//! and the project. See [`crate::executor::multiplex`] for the other end.
//!
//! The link outlives its connections ([`super::link`]), and nothing depends on it. Where there is
//! none (an engine that does not attach), or once it has ended, each of the three has an attached
//! process of its own.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;
use tokio_util::compat::{Compat, FuturesAsyncReadCompatExt, TokioAsyncReadCompatExt};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::environment::{Attached, Container, EXECUTOR, EnvironmentError, ProcessExit, Streams};
use crate::executor::{Channel, GREETING, ScriptEnding};
use crate::link::LinkEnd;
use crate::link::session::SessionKey;
use crate::workspace::streams::link::Link;

/// Longest time until the other end greets.
const GREETING_LIMIT: Duration = Duration::from_secs(20);

/// Most bytes that the three channels together may have received and not read.
const MOST_UNREAD: usize = 8 * 1024 * 1024;
const MOST_STREAMS: usize = 8;

/// Bytes that the channels hand to the link before it takes them, and the other way round.
const CARRIED_AT_ONCE: usize = 64 * 1024;

/// Most bytes of the answer about a script: its stderr, escaped.
const MAX_ANSWER: usize = 512 * 1024;

/// The channels of one container, each for one use. `None` where an attached process is needed.
#[derive(Default)]
pub(crate) struct Channels {
    pub(crate) tools: Option<Unopened>,
    pub(crate) tunnel: Option<Unopened>,
    pub(crate) script: Option<Unopened>,
}

/// A channel of which the other end knows nothing yet.
pub(crate) struct Unopened(ChannelStream);

/// An open channel. The link ends with the last of its channels.
pub(crate) struct ChannelStream {
    stream: Compat<yamux::Stream>,
    _use: Arc<DropGuard>,
}

impl Channels {
    /// Takes the streams of the executor that was started with the container; there are no channels
    /// where there are none, or none that can be used.
    pub(crate) async fn of(container: &Container) -> Self {
        match container.take_first() {
            Some(streams) => Self::over(container, streams).await,
            None => Self::default(),
        }
    }

    /// Starts another executor in a container that was taken over, and in which the earlier one was
    /// ended. There are no channels where that is not possible.
    pub(crate) async fn anew(container: &Container) -> Self {
        match container.attach(&[EXECUTOR, "multiplex"], &[]).await {
            Ok(attached) => Self::over(container, (attached.stdin, attached.stdout)).await,
            Err(error) => {
                tracing::info!(
                    container = container.id(),
                    "no executor could be started again: {error}"
                );
                Self::default()
            }
        }
    }

    async fn over(container: &Container, streams: Streams) -> Self {
        let begun = timeout(GREETING_LIMIT, Self::begin(container, streams)).await;
        let begun = begun.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()));
        begun.unwrap_or_else(|error| {
            let container = container.id();
            tracing::info!(
                container,
                "the link with the container's executor cannot be used: {error}"
            );
            Self::default()
        })
    }

    async fn begin(container: &Container, (mut stdin, mut stdout): Streams) -> io::Result<Self> {
        let mut greeting = vec![0; GREETING.len() + 1];
        stdout.read_exact(&mut greeting).await?;
        if greeting != format!("{GREETING}\n").as_bytes() {
            return Err(io::Error::other("it began with something else"));
        }
        let key = SessionKey::new()?;
        key.give((&mut stdout, &mut stdin)).await?;
        let mut config = yamux::Config::default();
        config.set_max_num_streams(MOST_STREAMS);
        config.set_max_connection_receive_window(Some(MOST_UNREAD));
        let (near, far) = tokio::io::duplex(CARRIED_AT_ONCE);
        let mut connection = yamux::Connection::new(near.compat(), config, yamux::Mode::Client);
        let mut opened = Vec::new();
        for _ in 0..3 {
            let stream = poll_fn(|context| connection.poll_new_outbound(context)).await;
            opened.push(stream.map_err(io::Error::other)?.compat());
        }
        let unused = CancellationToken::new();
        let link = Link {
            container: container.clone(),
            key,
            end: LinkEnd::default(),
            unused: unused.clone(),
        };
        let guard = Arc::new(unused.clone().drop_guard());
        let serving = async move {
            // The other end opens none; asking for them keeps the connection going.
            let asking =
                async { while let Some(Ok(_)) = poll_fn(|context| connection.poll_next_inbound(context)).await {} };
            unused.run_until_cancelled(asking).await;
            drop(connection);
        };
        // Not aborted with the last channel: the other end is told then, and would wait otherwise.
        // In one task: what one has to say the other does not wait long for.
        tokio::spawn(async move { tokio::join!(serving, link.keep(far, (stdin, stdout))) });
        let mut channel = || {
            Some(Unopened(ChannelStream {
                stream: opened.pop()?,
                _use: Arc::clone(&guard),
            }))
        };
        Ok(Self {
            tools: channel(),
            tunnel: channel(),
            script: channel(),
        })
    }
}

impl Unopened {
    /// Tells the other end what the channel is for.
    pub(crate) async fn open(self, channel: &Channel) -> io::Result<ChannelStream> {
        let Self(mut stream) = self;
        let mut line = serde_json::to_vec(channel)?;
        line.push(b'\n');
        stream.write_all(&line).await?;
        stream.flush().await?;
        Ok(stream)
    }

    /// Starts a script in `container` that gets what is written on its stdin. Its stdout is not
    /// returned.
    pub(crate) async fn run(
        self,
        container: &Container,
        command: &[&str],
        environment: &[&str],
    ) -> Result<Attached, EnvironmentError> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let channel = Channel::Script {
            command: owned(command),
            environment: owned(environment),
        };
        let container = container.clone();
        let stream = match self.open(&channel).await {
            Ok(stream) => stream,
            Err(error) => return Err(broken(&container, &error.to_string()).await),
        };
        let (reader, stdin) = tokio::io::split(stream);
        let answer = Arc::new(Mutex::new(Vec::new()));
        let stdout = Answer {
            reader,
            answer: Arc::clone(&answer),
        };
        let ending = async move {
            let answer = std::mem::take(&mut *answer.lock().unwrap_or_else(PoisonError::into_inner));
            match serde_json::from_slice::<ScriptEnding>(&answer) {
                Ok(ended) => Ok(ProcessExit {
                    exit_code: ended.exit_code,
                    stderr: ended.stderr,
                }),
                Err(_) => Err(broken(&container, "its stream broke off").await),
            }
        };
        Ok(Attached {
            stdin: Box::new(stdin),
            stdout: Box::new(stdout),
            ending: ending.boxed(),
        })
    }
}

async fn broken(container: &Container, reason: &str) -> EnvironmentError {
    container.broken("a script in the container", reason).await
}

/// Reads the answer about a script to its end, and shows nothing of it as output.
struct Answer<R> {
    reader: R,
    answer: Arc<Mutex<Vec<u8>>>,
}

impl<R: AsyncRead + Unpin> AsyncRead for Answer<R> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut piece = [0; 8 * 1024];
        loop {
            let mut piece = ReadBuf::new(&mut piece);
            ready!(Pin::new(&mut self.reader).poll_read(context, &mut piece))?;
            let mut answer = self.answer.lock().unwrap_or_else(PoisonError::into_inner);
            if piece.filled().is_empty() || answer.len() > MAX_ANSWER {
                return Poll::Ready(Ok(()));
            }
            answer.extend_from_slice(piece.filled());
        }
    }
}

impl AsyncRead for ChannelStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ChannelStream {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
