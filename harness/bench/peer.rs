//! Runs of the peer, mini-swe-agent, each a process of its own.

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent_harness::containers::IMAGE;
use coding_agent_harness::peer::Peer;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::fake::model::NAME;
use crate::process::peak_bytes;
use crate::ready::LIMITS;
use crate::site::Ran;

/// The longest time that one run of the peer may take.
const PATIENCE: Duration = Duration::from_mins(5);

/// How often the engine is asked whether a container of the peer has gone, and the pause between.
const LOOKS: usize = 100;
const PAUSE: Duration = Duration::from_millis(100);

/// How it is started: on our endpoint, in our image, with our limits.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/bench/peer.py");

/// The number of times that a failing request is made; here it is a fault of the bench.
const ATTEMPTS: u32 = 1;

/// The command that ends its run, as its prompt says.
pub const END: &str = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT";

/// Lets the peer work on `task` until the model ends it, and leaves no container behind.
pub async fn run(peer: &Peer, address: &str, task: &str) -> anyhow::Result<Ran> {
    let folder = tempfile::Builder::new().prefix("coding-agent-bench-").tempdir()?;
    let label = format!("coding-agent.bench={}", uuid::Uuid::new_v4());
    // Its environment has a command of its own, which the image's entry point would take for
    // arguments.
    let own = ["--rm", "--entrypoint=", "--label", &label];
    let shared = LIMITS
        .iter()
        .filter(|limit| **limit != "--rm" && !limit.starts_with("--entrypoint"));
    let limits: Vec<&str> = own.iter().chain(shared).copied().collect();
    let given = json!({ "address": address, "model": NAME, "image": IMAGE, "limits": limits, "task": task });
    let ran = run_in(peer, folder.path(), &given).await;
    removed(&label).await?;
    ran
}

async fn run_in(peer: &Peer, folder: &Path, given: &Value) -> anyhow::Result<Ran> {
    let mut command = Command::from(peer.command(SCRIPT, folder, ATTEMPTS));
    command
        .arg(given.to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let started = Instant::now();
    let process = command.spawn().context("mini-swe-agent cannot be started")?;
    let peak = peak_bytes(process.id().context("mini-swe-agent has ended at once")?);
    let output = tokio::time::timeout(PATIENCE, process.wait_with_output()).await;
    let output = output.context("mini-swe-agent did not end")??;
    anyhow::ensure!(
        output.status.success(),
        "mini-swe-agent failed: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(Ran {
        started,
        peak_bytes: peak.await?,
    })
}

/// Waits until the containers with this label have gone. The peer removes its own, in the
/// background and after its end; one that was cut short does not.
async fn removed(label: &str) -> anyhow::Result<()> {
    for _ in 0..LOOKS {
        let listed = Command::new("docker")
            .args(["ps", "--all", "--quiet", "--filter", &format!("label={label}")])
            .output()
            .await?;
        let containers = String::from_utf8(listed.stdout)?;
        if listed.status.success() && containers.trim().is_empty() {
            return Ok(());
        }
        // It may be on its way out already, which is no failure.
        let remove = Command::new("docker")
            .args(["rm", "--force"])
            .args(containers.split_whitespace())
            .output();
        remove.await?;
        tokio::time::sleep(PAUSE).await;
    }
    anyhow::bail!("a container of mini-swe-agent was left behind: docker ps --all --filter label={label}")
}
