//! The way to a server: any byte stream that can be opened again.

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// How a server is reached. Opened lazily, and once more after the stream was lost.
#[async_trait]
pub trait Connect: Send + Sync {
    /// Fails with [`Away`] where it was not the server's fault.
    async fn connect(&self) -> anyhow::Result<Connection>;

    /// Says what is at the other end and what it said last, for errors.
    fn description(&self) -> String {
        "the server".to_owned()
    }
}

/// What a server runs on cannot be reached now. The server itself may be well, and this says
/// nothing about it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Away(pub String);

/// An open stream to a server.
pub struct Connection {
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// Ends whatever the stream belongs to and waits until it is gone. Called after both halves are
    /// dropped.
    pub end: Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>,
}
