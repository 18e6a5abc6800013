//! One running container and the streams into it.

use tokio::io::{AsyncRead, AsyncWrite};

use super::EnvironmentError;

/// A started container. Dropping it does not remove it: [`Container::remove`] does, or the sweep after a crash.
#[derive(Clone, Debug)]
pub struct Container {}

/// A process in the container with its streams attached.
pub struct Attached {
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Read what the process wrote to stderr (bounded) and its exit code, after stdout ended.
    pub ending: futures_util::future::BoxFuture<'static, Result<Ending, EnvironmentError>>,
}

/// How a process in the container ended.
#[derive(Debug, Clone)]
pub struct Ending {
    pub exit_code: i64,
    /// The last 64 KiB.
    pub stderr: String,
}

impl Container {
    /// Returns Docker's id of it.
    pub fn id(&self) -> &str {
        todo!()
    }

    /// Starts `command` as the container's user in `/workspace` with its streams attached; `environment` as `NAME=value`.
    pub async fn attach(&self, _command: &[&str], _environment: &[&str]) -> Result<Attached, EnvironmentError> {
        todo!()
    }

    /// Runs `command` with `input` as its stdin, streamed; returns its stdout (at most `max_output` bytes, more is an error) and ending.
    pub async fn run(
        &self,
        _command: &[&str],
        _input: impl AsyncRead + Send + Unpin,
        _max_output: usize,
    ) -> Result<(Vec<u8>, Ending), EnvironmentError> {
        todo!()
    }

    /// Removes the container by force. One that is gone already is no error.
    pub async fn remove(&self) -> Result<(), EnvironmentError> {
        todo!()
    }
}
