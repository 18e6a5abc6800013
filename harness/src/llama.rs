//! llama.cpp's own server, in the version that `scripts/setup test-model` installs beside the
//! builds.

use std::ffi::OsStr;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::build;

const STARTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/llama.py");

/// Starts the server with the arguments that `llama.py` takes, and returns it with its address. It
/// ends when it is dropped, and with this program.
pub async fn start(arguments: &[&OsStr], limit: Duration) -> anyhow::Result<(Child, String)> {
    let installed = build::beside("test-model")?;
    let (python, log) = (installed.join("bin/python"), installed.join("server.log"));
    anyhow::ensure!(
        python.exists(),
        "{} is missing; `scripts/setup test-model` makes it",
        python.display()
    );
    let mut child = Command::new(python)
        .arg(STARTER)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log)?)
        .kill_on_drop(true)
        .spawn()
        .context("llama.cpp's server cannot be started")?;
    let stdout = child.stdout.take().context("the server has no stdout")?;
    let mut lines = BufReader::new(stdout).lines();
    let first = tokio::time::timeout(limit, lines.next_line()).await;
    let address = first
        .context("llama.cpp's server took too long to start")??
        .with_context(|| format!("llama.cpp's server ended; {} tells why", log.display()))?;
    Ok((child, address))
}
