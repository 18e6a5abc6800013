//! The operations on one container that exists, the same for every kind of engine: its processes,
//! its state and its removal.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};

use super::error::EnvironmentError;

/// Path of the executor in every container.
pub const EXECUTOR: &str = "/usr/local/bin/coding-agent-executor";
/// Folder in which every process starts.
pub(crate) const WORKSPACE: &str = "/workspace";

/// A process' stdin and stdout. Dropping both ends its input.
pub type Streams = (Box<dyn AsyncWrite + Send + Unpin>, Box<dyn AsyncRead + Send + Unpin>);

/// A started process.
pub(crate) struct Process {
    pub(crate) stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Resolves once stdout was read to its end; `None` if the process still runs then.
    pub(crate) ending: BoxFuture<'static, Result<Option<ProcessExit>, Failure>>,
}

/// How a process in the container ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessExit {
    pub exit_code: i64,
    /// The last 64 KiB.
    pub stderr: String,
}

/// Whether a container runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ContainerState {
    Running,
    /// It does not; the words say why, and follow `the container is gone: `.
    Ended(String),
}

/// The failure of a call, before it is known who must act.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine did not answer.
    Silent(String),
    /// The engine answered with an error.
    Refused { status: u16, message: String },
    /// Something else, e.g. an answer that cannot be read.
    Other(String),
}

impl Failure {
    /// Returns true if the object does not exist (404).
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Returns true if the state of the object does not allow the call (409), e.g. a container that
    /// does not run.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }

    /// Returns true if the engine answered with an error.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// Returns the engine's error message, if it answered with one.
    pub(crate) fn complaint(&self) -> Option<&str> {
        match self {
            Self::Refused { message, .. } => Some(message),
            Self::Silent(_) | Self::Other(_) => None,
        }
    }

    /// Returns the engine's text alone.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Silent(reason) | Self::Other(reason) | Self::Refused { message: reason, .. } => reason,
        }
    }
}

/// The processes of containers, as a kind of engine has them. A container is named as the engine
/// names it.
#[async_trait]
pub(crate) trait Processes: fmt::Debug + Send + Sync {
    /// Starts `command` in a running container as its user in the workspace; `environment` as
    /// `NAME=value`.
    async fn exec(&self, container: &str, command: &[&str], environment: &[&str]) -> Result<Process, Failure>;

    async fn state(&self, container: &str) -> Result<ContainerState, Failure>;

    /// Waits until the container has ended, for at most `limit`.
    async fn wait(&self, container: &str, limit: Duration);

    /// Removes the container, if it still exists, and waits until it is gone.
    async fn remove(&self, container: &str) -> Result<(), Failure>;

    /// Converts a failure of `what` into an error that says who must act.
    fn error(&self, what: &str, failure: Failure) -> EnvironmentError;
}
