//! A configured MCP server as a child process behind the guard.
//!
//! It gets only four variables of the worker's environment, besides those that its configuration
//! gives. Its stderr goes to the log, line by line, up to a bound; the last lines are kept
//! for the error when it dies.

use anyhow::Context;
use async_trait::async_trait;
use futures_util::FutureExt;
use secrecy::{ExposeSecret, SecretString};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::McpServerConfig;
use super::connect::{Connect, Connection, INSTALL};
use super::guard::{GRACE, LEAVING_TIME};
use crate::private::mask_of_user;
use crate::process::ending::end_descendants;

/// Variables of the worker's environment that every server gets.
const KEPT: [&str; 4] = ["PATH", "HOME", "LANG", "TMPDIR"];

/// Longest part of a line that is read; the rest is left out.
const MAX_LINE_BYTES: usize = 8 * 1024;

const LAST_LINES: usize = 3;

/// Most bytes of a server's stderr in the log, for each run: one that writes without an end would
/// fill the day's log, and nothing else could be noted there.
const MAX_LOGGED_BYTES: usize = 1024 * 1024;
/// Bytes that a logged line takes besides its text.
const LINE_OVERHEAD: usize = 100;

/// Time that the guard itself may take beyond what it allows the server.
pub(super) const GUARD_MARGIN: Duration = Duration::from_secs(10);

/// Starts one server.
pub(super) struct StdioServer {
    name: String,
    command: Vec<String>,
    env: BTreeMap<String, SecretString>,
    guard: PathBuf,
    said: Arc<Mutex<Said>>,
}

/// The output of a server on stderr, over all its starts.
#[derive(Default)]
pub(super) struct Said {
    last_lines: VecDeque<String>,
    logged: usize,
}

impl Said {
    /// Returns the last lines, joined to one.
    pub(super) fn last(&self) -> String {
        self.last_lines.iter().cloned().collect::<Vec<_>>().join(" | ")
    }

    /// Logs a line while there is room, and keeps it as the last one.
    fn take(&mut self, server: &str, line: String) {
        let had_room = self.logged < MAX_LOGGED_BYTES;
        self.logged = self.logged.saturating_add(line.len() + LINE_OVERHEAD);
        if self.logged < MAX_LOGGED_BYTES {
            tracing::info!(target: "mcp", server, "{line}");
        } else if had_room {
            tracing::warn!(target: "mcp", server, "the rest of what it writes to stderr is left out");
        }
        self.last_lines.push_back(line);
        if self.last_lines.len() > LAST_LINES {
            self.last_lines.pop_front();
        }
    }
}

impl StdioServer {
    pub(super) fn new(config: &McpServerConfig, guard: &Path) -> Self {
        Self {
            name: config.mcp_server_name.clone(),
            command: config.command.clone(),
            env: config.env.clone(),
            guard: guard.to_owned(),
            said: Arc::default(),
        }
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "a tool server is given PATH, proxies and the like of the worker's"
    )]
    fn spawn(&self) -> std::io::Result<Child> {
        let kept = KEPT.iter().filter_map(|name| Some((name, std::env::var_os(name)?)));
        let configured = self.env.iter().map(|(name, value)| (name, value.expose_secret()));
        Command::new(&self.guard)
            .args(["mcp-guard", "--mask", &format!("{:o}", mask_of_user()), "--"])
            .args(&self.command)
            .env_clear()
            .envs(kept)
            .envs(configured)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
    }
}

#[async_trait]
impl Connect for StdioServer {
    async fn connect(&self) -> anyhow::Result<Connection> {
        let guard = self.guard.display();
        let mut child = self
            .spawn()
            .with_context(|| format!("the guard {guard} cannot be started"))?;
        let stdin = child.stdin.take().context("the server has no stdin")?;
        let stdout = child.stdout.take().context("the server has no stdout")?;
        let stderr = child.stderr.take().context("the server has no stderr")?;
        let draining = tokio::spawn(drain(stderr, self.name.clone(), Arc::clone(&self.said)));
        Ok(Connection {
            reader: Box::new(stdout),
            writer: Box::new(stdin),
            end: Box::new(move || end(child, draining).boxed()),
        })
    }

    fn description(&self) -> String {
        let command = self.command.join(" ");
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.last_lines.is_empty() {
            return format!("`{command}`");
        }
        format!("`{command}` (which said last: {})", said.last())
    }

    fn not_started(&self) -> Option<String> {
        let program = self.command.first()?;
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let reason = said.last_lines.back()?.strip_prefix(program.as_str())?;
        // In the words of the guard, which ends then.
        let reason = reason.strip_prefix(" cannot be started: ")?;
        Some(format!("`{program}` cannot be started: {reason}; {INSTALL}"))
    }
}

/// Waits until the guard has ended the server, whose stdin is closed by now.
async fn end(mut guard: Child, draining: JoinHandle<()>) {
    if timeout(LEAVING_TIME + GRACE + GUARD_MARGIN, guard.wait())
        .await
        .is_err()
    {
        // The server is ended first: without its guard nobody could find its descendants.
        if let Some(id) = guard.id() {
            let _ = tokio::task::spawn_blocking(move || end_descendants(id, Duration::ZERO)).await;
        }
        let _ = guard.kill().await;
    }
    // The last lines are in the pipe, and no process is left that could hold it open.
    let _ = timeout(GUARD_MARGIN, draining).await;
}

pub(super) async fn drain(stderr: impl AsyncRead + Unpin, server: String, said: Arc<Mutex<Said>>) {
    let mut stderr = BufReader::new(stderr);
    while let Some(line) = next_line(&mut stderr).await {
        said.lock().unwrap_or_else(PoisonError::into_inner).take(&server, line);
    }
}

/// Reads a line of any length into bounded memory; `None` at the end.
async fn next_line(stderr: &mut (impl AsyncBufReadExt + Unpin)) -> Option<String> {
    let mut line = Vec::new();
    loop {
        let buffer = stderr.fill_buf().await.unwrap_or_default();
        if buffer.is_empty() && line.is_empty() {
            return None;
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let piece = &buffer[..end.unwrap_or(buffer.len())];
        line.extend_from_slice(&piece[..piece.len().min(MAX_LINE_BYTES - line.len())]);
        let is_last = buffer.is_empty() || end.is_some();
        let consumed = end.map_or(buffer.len(), |end| end + 1);
        stderr.consume(consumed);
        if is_last {
            return Some(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn long_lines_and_the_last_one_without_an_end_are_read() {
        let long = "x".repeat(3 * MAX_LINE_BYTES);
        let text = format!("one\r\n\n{long}\nlast");
        let mut reader = BufReader::with_capacity(1000, text.as_bytes());
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut reader).await {
            lines.push(line);
        }
        assert_eq!(lines, ["one", "", &long[..MAX_LINE_BYTES], "last"]);
    }
}
