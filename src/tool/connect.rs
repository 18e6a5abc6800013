//! Connections to servers: any byte stream that can be opened again.

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

/// What helps where the program of a server cannot be started.
pub const INSTALL: &str = "install it, or name it with its whole path";

/// Opens the stream to a server: lazily, and once more after it was lost.
#[async_trait]
pub trait Connect: Send + Sync {
    /// Opens the stream. Fails with [`Away`] if that is not the server's fault.
    async fn connect(&self) -> anyhow::Result<Connection>;

    /// Describes the other end and what it said last, for errors.
    fn description(&self) -> String {
        "the server".to_owned()
    }

    /// Returns why the server's program could not be started the last time, with [`INSTALL`] behind
    /// it; `None` if it could, or there is none.
    fn not_started(&self) -> Option<String> {
        None
    }
}

/// The machine or container that a server runs on cannot be reached now. This says nothing about
/// the server itself.
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
