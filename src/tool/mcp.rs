//! An MCP client (rmcp) over any byte stream that can be opened again: a child process, or an exec in a container.

use async_trait::async_trait;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};

/// How a server is reached. Opened lazily, and once more after the stream was lost.
#[async_trait]
pub trait Connect: Send + Sync {
    async fn connect(&self) -> anyhow::Result<Connection>;
}

/// An open stream to a server.
pub struct Connection {
    pub reader: Box<dyn AsyncRead + Send + Unpin>,
    pub writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// Ends whatever the stream belongs to and waits until it is gone.
    pub end: Box<dyn FnOnce() -> futures_util::future::BoxFuture<'static, ()> + Send>,
}

/// Implements [`super::ToolServer`] over a [`Connect`].
pub struct McpServer {}

impl McpServer {
    pub fn new(
        _name: &str,
        _system_prompt: Option<String>,
        _only: Option<Vec<String>>,
        _timeout: Duration,
        _connect: Box<dyn Connect>,
    ) -> Self {
        todo!()
    }

    /// Returns a configured stdio server; nothing is started before the first use.
    pub fn configured(_config: &super::McpServerConfig) -> Self {
        todo!()
    }
}
