//! The real program in a folder of its own: its configuration, home, state, logs and output.
//! Nothing of it is shared with another installation or with the user's own.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Child;

use crate::fake::model::Model;
use crate::{build, containers, journal_files};

/// All that the program, or its peer, gets to see of the environment that a harness is started in.
const HANDED_ON: [&str; 3] = ["PATH", "DOCKER_HOST", "RUST_BACKTRACE"];

pub struct Installation {
    folder: TempDir,
    /// The folder that `state` and `logs` lie in.
    home: PathBuf,
}

impl Installation {
    /// Makes the folder, with the harness's name in its own.
    pub fn new(harness: &str) -> anyhow::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix(&format!("coding-agent-{harness}-"))
            .tempdir()?;
        std::fs::create_dir(folder.path().join("tmp"))?;
        let home = folder.path().to_owned();
        Ok(Self { folder, home })
    }

    /// Has state and logs lie elsewhere, such as on a disk that can be filled.
    pub fn keep_state_in(&mut self, home: &Path) {
        home.clone_into(&mut self.home);
    }

    /// Writes the configuration, with state and logs in the places that this installation looks at,
    /// and with the cluster that variables name (`scripts/with-kubernetes`) as its engine.
    pub fn configure(&self, mut config: Value) -> anyhow::Result<()> {
        if let Some(engine) = cluster() {
            config["environment"] = engine;
            // It is one small machine, and what a pod may use is reserved for it.
            config["command_executor"]["resources"] = json!({ "cpu_limit": 0.3, "memory_limit": "400m" });
        }
        config["state_dir"] = json!(self.state_dir());
        config["logs"] = json!({ "directory": self.logs() });
        // JSON is YAML.
        Ok(std::fs::write(self.config(), config.to_string())?)
    }

    /// Changes the configuration that was written.
    pub fn reconfigure(&self, change: impl FnOnce(&mut Value)) -> anyhow::Result<()> {
        let mut config: Value = serde_json::from_slice(&std::fs::read(self.config())?)?;
        change(&mut config);
        self.configure(config)
    }

    fn config(&self) -> PathBuf {
        self.folder().join("config.yaml")
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn state_dir(&self) -> PathBuf {
        self.home.join("state")
    }

    pub fn logs(&self) -> PathBuf {
        self.home.join("logs")
    }

    /// Returns the program's temporary folder, which is empty when it has ended.
    pub fn temporary(&self) -> PathBuf {
        self.folder().join("tmp")
    }

    /// Returns `coding-agent` with these arguments, ready to be started.
    pub fn command(&self, arguments: &[&str]) -> anyhow::Result<Command> {
        let mut command = with_little_environment(&build::program()?);
        command
            .arg("--config")
            .arg(self.config())
            .args(arguments)
            .env("HOME", self.folder())
            .env("TMPDIR", self.temporary())
            .current_dir(self.folder())
            .stdin(Stdio::null());
        Ok(command)
    }

    /// Starts a command of this installation. What it prints goes to a file; it is killed when
    /// dropped.
    pub fn start(&self, command: Command) -> anyhow::Result<Child> {
        let said = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.folder().join("said.txt"))?;
        let mut command = tokio::process::Command::from(command);
        command
            .stdout(said.try_clone()?)
            .stderr(said)
            .kill_on_drop(true)
            .spawn()
            .context("the program cannot be started")
    }

    /// Starts one cycle of the program, whose output can be read. Dropped, it ends.
    pub fn start_run(&self) -> anyhow::Result<Child> {
        tokio::process::Command::from(self.command(&["run"])?)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("the program cannot be started")
    }

    /// Returns what the programs that were started have printed until now.
    pub fn said(&self) -> String {
        std::fs::read_to_string(self.folder().join("said.txt")).unwrap_or_default()
    }

    /// Returns the lines of the journal as they are written, the last one perhaps in part.
    pub fn journal_lines(&self) -> Vec<String> {
        journal_files::lines(&self.logs())
    }

    /// Returns the facts of the journal.
    pub fn journal(&self) -> Vec<Value> {
        let lines = self.journal_lines();
        lines.iter().flat_map(|line| serde_json::from_str(line)).collect()
    }

    /// Returns the names of the containers of this installation, as the engine itself tells it.
    pub async fn containers(&self) -> anyhow::Result<Vec<String>> {
        containers::names(&self.state_dir()).await
    }

    /// Returns the label that all containers of this installation bear.
    pub fn label(&self) -> String {
        containers::label(&self.state_dir())
    }

    /// Returns the command lines of all processes that name this installation's folder.
    pub fn processes(&self) -> Vec<String> {
        let folder = self.folder().display().to_string();
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            if line.contains(&folder) {
                found.push(line.chars().take(200).collect());
            }
        }
        found
    }

    /// Keeps the folder for people to look at, with what happened in `story.txt`.
    pub fn keep(&mut self, story: &str) -> PathBuf {
        let _ = std::fs::write(self.folder().join("story.txt"), story);
        self.folder.disable_cleanup(true);
        self.folder().to_owned()
    }
}

/// Returns the section `environment` for the cluster of the tests, if there is one.
fn cluster() -> Option<Value> {
    let namespace = std::env::var("CODING_AGENT_TEST_KUBERNETES_NAMESPACE").ok()?;
    let kubeconfig = std::env::var("KUBECONFIG").ok()?;
    Some(json!({
        "engine": "kubernetes",
        "kubernetes": { "namespace": namespace, "kubeconfig": kubeconfig },
    }))
}

/// Returns a command whose environment is `HANDED_ON` alone.
pub(crate) fn with_little_environment(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    for name in HANDED_ON {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}

/// Returns the section `llm` for a scripted model that speaks as OpenAI does.
pub fn scripted(model: &Model, key: &str) -> Value {
    json!({
        "provider": "openai",
        "function_calling": false,
        "openai": { "base_url": model.openai_address(), "api_key": key, "model": "scripted" },
    })
}

/// Returns the section `command_executor` with the Python environment alone.
pub fn executor() -> anyhow::Result<Value> {
    Ok(json!({
        "environments": { "python": containers::IMAGE },
        "default_environment": "python",
        "executor_path": build::executor()?,
    }))
}

/// Sets several keys of a section.
pub fn with(mut section: Value, keys: &Value) -> Value {
    for (key, value) in keys.as_object().into_iter().flatten() {
        section[key] = value.clone();
    }
    section
}
