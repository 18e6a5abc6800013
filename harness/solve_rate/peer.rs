//! The peer: mini-swe-agent with the same model on the same files, in the same image. It is
//! installed by `scripts/setup peer`; where that is not possible there is no peer, and nothing is
//! made up in its place.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use base64::Engine;
use coding_agent_harness::build;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::bench::Bench;
use crate::outcome::{End, Outcome, Worker};
use crate::program::{self, Limits};
use crate::server::Server;
use crate::task::{Files, Task};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/solve_rate/peer.py");
/// The longest time that one task may take. Its own limit ends it earlier.
const PATIENCE: Duration = Duration::from_mins(40);

pub struct Peer {
    python: PathBuf,
}

impl Peer {
    /// Returns the peer where it is installed.
    pub fn installed() -> anyhow::Result<Option<Self>> {
        let folder = build::beside("peer")?;
        // Written last: half an installation is none.
        let is_whole = folder.join("version").is_file();
        Ok(is_whole.then(|| Self {
            python: folder.join("bin/python"),
        }))
    }

    pub async fn work(&self, server: &Server, bench: &Bench, task: &Task, limits: Limits) -> anyhow::Result<Outcome> {
        let folder = tempfile::Builder::new().prefix("coding-agent-solve-rate-").tempdir()?;
        let label = format!("coding-agent.solve-rate={}", uuid::Uuid::new_v4());
        let told = self.told(folder.path(), &label, server, (task, limits)).await;
        program::remove_containers(&label).await?;
        let (told, seconds) = told?;
        let mut files = Files::new();
        for (path, content) in told["files"].as_object().into_iter().flatten() {
            let content = base64::engine::general_purpose::STANDARD.decode(content.as_str().unwrap_or_default())?;
            files.push((path.clone(), String::from_utf8_lossy(&content).into_owned()));
        }
        let (passes_visible, solved) = program::tested(bench, task, files).await?;
        let ended = told["ended"].as_str().unwrap_or_default();
        let count = |name: &str| told[name].as_u64().unwrap_or_default();
        Ok(Outcome {
            task: task.name.clone(),
            grade: task.grade,
            worker: Worker::Peer,
            end: if ended == "Submitted" { End::Ready } else { End::Failed },
            solved: solved && ended == "Submitted",
            passes_visible,
            names_doubts: false,
            input: count("input"),
            output: count("output"),
            turns: usize::try_from(count("turns"))?,
            seconds,
            reason: ended.chars().take(300).collect(),
        })
    }

    async fn told(
        &self,
        folder: &std::path::Path,
        label: &str,
        server: &Server,
        (task, limits): (&Task, Limits),
    ) -> anyhow::Result<(Value, f64)> {
        let image = format!("coding-agent-executor-{}:latest", task.language.environment());
        let given = json!({
            "base": server.base(), "key": server.key(), "model": server.model, "native": server.takes_native_calls(),
            "image": image, "task": format!("{}\n\n{}", task.title, task.body), "files": task.files,
            "run_args": ["--rm", "--init", "--entrypoint=", "--network=none", "--memory=4g", "--pids-limit=512", "--label", label],
            "steps": limits.turns, "seconds": limits.minutes * 60,
        });
        let mut command = Command::new(&self.python);
        command.env_clear();
        for name in ["PATH", "DOCKER_HOST"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let mut child = command
            .env("HOME", folder)
            .env("MSWEA_GLOBAL_CONFIG_DIR", folder)
            .env("MSWEA_SILENT_STARTUP", "1")
            .env("MSWEA_COST_TRACKING", "ignore_errors")
            .env("MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT", "1")
            .env("LITELLM_LOCAL_MODEL_COST_MAP", "True")
            .arg(SCRIPT)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("mini-swe-agent cannot be started")?;
        let begun = Instant::now();
        let mut stdin = child.stdin.take().context("it has no stdin")?;
        stdin.write_all(given.to_string().as_bytes()).await?;
        drop(stdin);
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
        let output = output.context("mini-swe-agent did not end")??;
        let said = String::from_utf8_lossy(&output.stdout);
        let told = said
            .lines()
            .next_back()
            .and_then(|line| serde_json::from_str(line).ok());
        let told =
            told.with_context(|| format!("mini-swe-agent failed: {}", String::from_utf8_lossy(&output.stderr)))?;
        Ok((told, begun.elapsed().as_secs_f64()))
    }
}
