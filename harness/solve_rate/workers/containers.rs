//! Containers that a worker made, found by a label of its own.

use std::process::Output;
use std::time::Duration;

use anyhow::Context;
use tokio::process::Command;

/// The longest time for anything that is asked of the engine.
const ENGINE: Duration = Duration::from_mins(2);

/// Returns the containers with a label.
pub async fn with(label: &str) -> anyhow::Result<Vec<String>> {
    let filter = format!("label={label}");
    let listed = docker(&["ps", "--all", "--quiet", "--filter", &filter]).await?;
    let containers = String::from_utf8(listed.stdout)?;
    Ok(containers.split_whitespace().map(str::to_owned).collect())
}

/// Removes the containers with a label.
pub async fn remove(label: &str) -> anyhow::Result<()> {
    let containers = with(label).await?;
    if !containers.is_empty() {
        let mut arguments = vec!["rm", "--force", "--volumes"];
        arguments.extend(containers.iter().map(String::as_str));
        // One may be on its way out already, which is no failure.
        docker(&arguments).await?;
    }
    Ok(())
}

/// Returns what a command in a container gives, without the engine's complaints.
pub async fn printed(container: &str, command: &str) -> anyhow::Result<Vec<u8>> {
    let output = docker(&["exec", container, "sh", "-c", command]).await?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "{command} in {container} failed: {complaint}");
    Ok(output.stdout)
}

async fn docker(arguments: &[&str]) -> anyhow::Result<Output> {
    let asked = Command::new("docker").args(arguments).kill_on_drop(true).output();
    let output = tokio::time::timeout(ENGINE, asked).await;
    output
        .context("the engine does not answer")?
        .context("docker cannot be started")
}
