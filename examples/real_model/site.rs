//! The program between a fake forge, a real engine and a real model, in a folder of its own.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use bollard::Docker;
use bollard::query_parameters::ListContainersOptionsBuilder;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::fake::github::{GitHub, Item};
use crate::relay::{Relay, Trouble};
use crate::server::{Server, WINDOW};

pub const TRIGGER: &str = "coding agent";
const IMAGE: &str = "coding-agent-executor-python:latest";

/// Longest time one run of the program may take. Its own limits end it earlier.
const PATIENCE: Duration = Duration::from_mins(4);

/// Most model turns of a task: a model that understands nothing goes on for ever.
const MOST_TURNS: u32 = 3;

pub struct Site {
    pub github: GitHub,
    pub relay: Relay,
    config: Value,
    folder: TempDir,
}

/// How the program ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    /// What it printed.
    pub said: String,
}

impl Site {
    pub async fn new(server: &Server) -> anyhow::Result<Self> {
        Self::behind(Trouble::None, server, WINDOW).await
    }

    /// Returns a site whose line to the server has this trouble, and which is told that the window
    /// is `window`.
    pub async fn behind(trouble: Trouble, server: &Server, window: u64) -> anyhow::Result<Self> {
        let relay = Relay::start(&server.address, trouble)?;
        let github = GitHub::start().await;
        let folder = tempfile::Builder::new().prefix("coding-agent-real-model-").tempdir()?;
        std::fs::create_dir_all(folder.path().join("tmp"))?;
        let mut llm = server.section(relay.address(), window);
        llm["function_calling"] = json!(false);
        llm["constrained_replies"] = json!(true);
        llm["timeout_seconds"] = json!(90);
        let config = json!({
            "task_sources": ["github"],
            "github": { "api_url": github.api_url(), "token": github.token(), "repositories": ["acme/widgets"] },
            "llm": llm,
            "max_llm_process_num": MOST_TURNS,
            "planning": { "max_look_turns": 1, "max_subtasks": 1 },
            "command_executor": {
                "environments": { "python": IMAGE },
                "default_environment": "python",
                "executor_path": built("coding-agent-executor-static")?,
                "timeout_seconds": 10,
            },
        });
        Ok(Self {
            github,
            relay,
            config,
            folder,
        })
    }

    pub fn configure(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.config);
    }

    /// Opens the issue that is worked on.
    pub fn open_issue(&self, body: &str) -> Item {
        let issue = self.github.open_issue("Greet the reader");
        issue.body(body).label(TRIGGER);
        issue
    }

    /// Runs the program with these arguments to its end.
    pub async fn command(&self, arguments: &[&str]) -> anyhow::Result<Ended> {
        // JSON is YAML.
        std::fs::write(self.folder().join("config.yaml"), self.config.to_string())?;
        let mut command = Command::new(built("coding-agent")?);
        command.env_clear();
        for name in ["PATH", "DOCKER_HOST", "RUST_BACKTRACE"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        let child = command
            .args(["--config", "config.yaml"])
            .args(arguments)
            .env("HOME", self.folder())
            .env("TMPDIR", self.folder().join("tmp"))
            .current_dir(self.folder())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("the program cannot be started")?;
        let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
        let output = output.context("the program did not end")??;
        Ok(Ended {
            code: output.status.code(),
            said: String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        })
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the facts of one kind from the journal.
    pub fn facts(&self, kind: &str) -> anyhow::Result<Vec<Value>> {
        let mut facts = Vec::new();
        for file in std::fs::read_dir(self.folder().join("logs"))? {
            let path = file?.path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                let lines = std::fs::read_to_string(path)?;
                let lines = lines
                    .lines()
                    .filter_map(|line| serde_json::from_str::<Value>(line).ok());
                facts.extend(lines.filter(|line| line["fact"] == kind));
            }
        }
        Ok(facts)
    }

    /// Returns what is left of the run: containers, processes, temporary files.
    pub async fn left_over(&self) -> anyhow::Result<Vec<String>> {
        let instance = coding_agent::service::instance(&self.folder().join("state"));
        let filters = HashMap::from([("label", vec![format!("coding-agent.instance={instance}")])]);
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let containers = Docker::connect_with_defaults()?.list_containers(Some(options)).await?;
        let mut left: Vec<String> = containers
            .into_iter()
            .map(|container| format!("the container {}", container.names.unwrap_or_default().join(" ")))
            .collect();
        for entry in std::fs::read_dir(self.folder().join("tmp"))? {
            left.push(entry?.path().display().to_string());
        }
        let folder = self.folder().display().to_string();
        for entry in std::fs::read_dir("/proc")?.flatten() {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(&folder) {
                left.push(format!("the process {line}"));
            }
        }
        Ok(left)
    }

    /// Keeps the folder for people to look at, with what happened beside it.
    pub fn keep(mut self) -> PathBuf {
        let exchanges: Vec<Value> = self
            .relay
            .exchanges()
            .into_iter()
            .map(|passed| json!({ "request": passed.request, "status": passed.status, "answer": passed.answer }))
            .collect();
        let _ = std::fs::write(self.folder().join("exchanges.json"), json!(exchanges).to_string());
        let _ = std::fs::write(self.folder().join("story.txt"), self.github.timeline());
        self.folder.disable_cleanup(true);
        self.folder.path().to_owned()
    }
}

/// Returns the path of a program that was built in the same profile as this one.
fn built(name: &str) -> anyhow::Result<PathBuf> {
    let path = folder_of_the_build()?.join(name);
    anyhow::ensure!(
        path.is_file(),
        "{} is missing; `make test-model` builds it",
        path.display()
    );
    Ok(path)
}

/// Returns the folder that holds the programs built in this one's profile, such as `target/debug`.
pub fn folder_of_the_build() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let folder = own.parent().and_then(Path::parent);
    Ok(folder.context("this program lies in no build folder")?.to_owned())
}
