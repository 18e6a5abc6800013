//! The executor in a container, as the connection of a tool server.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use async_trait::async_trait;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use crate::environment::{self, Container, EXECUTOR, EnvironmentError, ProcessExit};
use crate::executor::Channel;
use crate::tool::connect::{Away, Connect, Connection};
use crate::workspace::scripts::PROJECT;
use crate::workspace::streams::link::end_earlier;
use crate::workspace::streams::multiplexer::Unopened;

/// Time for the executor to end what it started.
const ENDING: Duration = Duration::from_secs(10);

/// Connection to the executor in a container: the first over the channel, if there is one, and each
/// other over an attached process.
pub(crate) struct ExecutorStream {
    container: Container,
    config: environment::Config,
    channel: Mutex<Option<Unopened>>,
    /// Whether there was a connection before, whose commands may still run.
    was_connected: AtomicBool,
}

impl ExecutorStream {
    pub(crate) fn new(container: Container, config: environment::Config, channel: Option<Unopened>) -> Self {
        Self {
            container,
            config,
            channel: Mutex::new(channel),
            was_connected: AtomicBool::new(false),
        }
    }

    /// Returns the arguments of the executor's tools.
    fn arguments(&self) -> Vec<String> {
        let timeout = self.config.timeout_seconds.to_string();
        let output = self.config.max_output_bytes.to_string();
        let largest = self.config.files.max_bytes.to_string();
        let mut arguments: Vec<String> = [
            "--root",
            PROJECT,
            "--default-timeout",
            &timeout,
            "--max-timeout",
            &timeout,
            "--max-output-bytes",
            &output,
            "--max-file-bytes",
            &largest,
        ]
        .map(str::to_owned)
        .into();
        for extension in &self.config.files.allowed_extensions {
            arguments.extend(["--allow-extension".to_owned(), extension.clone()]);
        }
        arguments
    }

    async fn over_the_channel(&self) -> Option<Connection> {
        let channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        let opened = channel.open(&Channel::Tools(self.arguments())).await.ok()?;
        let stream = SharedStream(Arc::new(Mutex::new(opened)));
        let mut last = stream.clone();
        Some(Connection {
            reader: Box::new(stream.clone()),
            writer: Box::new(stream),
            // The other end closes the channel when everything that it started has ended.
            end: Box::new(|| {
                Box::pin(async move {
                    let ended = async {
                        last.shutdown().await?;
                        tokio::io::copy(&mut last, &mut tokio::io::sink()).await
                    };
                    let _ = tokio::time::timeout(ENDING, ended).await;
                })
            }),
        })
    }
}

/// A stream that is read and written by different owners, and at last ended by a third.
struct SharedStream<S>(Arc<Mutex<S>>);

impl<S> Clone for SharedStream<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> SharedStream<S> {
    fn lock(&self) -> MutexGuard<'_, S> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for SharedStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for SharedStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut *self.lock()).poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut *self.lock()).poll_shutdown(context)
    }
}

#[async_trait]
impl Connect for ExecutorStream {
    async fn connect(&self) -> anyhow::Result<Connection> {
        let was_connected = self.was_connected.swap(true, Ordering::Relaxed);
        if let Some(connection) = self.over_the_channel().await {
            return Ok(connection);
        }
        let refused = |error: EnvironmentError| match error {
            away @ (EnvironmentError::EngineUnavailable { .. } | EnvironmentError::ClusterUnavailable { .. }) => {
                anyhow::Error::new(Away(away.to_string()))
            }
            other => other.into(),
        };
        // The executor waits longer for a worker than the worker tries to come back, and its
        // commands would change the project beside new ones.
        if was_connected {
            end_earlier(&self.container).await.map_err(refused)?;
        }
        let arguments = self.arguments();
        let command: Vec<&str> = [EXECUTOR]
            .into_iter()
            .chain(arguments.iter().map(String::as_str))
            .collect();
        let attached = self.container.attach(&command, &[]).await.map_err(refused)?;
        let ending = attached.ending;
        Ok(Connection {
            reader: attached.stdout,
            writer: attached.stdin,
            // The executor ends itself and everything it started when its stdin closes.
            end: Box::new(|| {
                Box::pin(async move {
                    let _: Result<Result<ProcessExit, EnvironmentError>, _> =
                        tokio::time::timeout(ENDING, ending).await;
                })
            }),
        })
    }
}
