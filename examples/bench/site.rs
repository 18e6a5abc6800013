//! The program, configured for the fakes in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fake::github::GitHub;
use crate::fake::model::Model;
use crate::process::peak_bytes;

/// The image that everything runs in.
pub const IMAGE: &str = "coding-agent-executor-python:latest";

/// Longest time one run of the program may take, or anything else that is waited for.
const PATIENCE: Duration = Duration::from_mins(10);

/// Between two looks whether something has come about.
pub const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// A GitHub, and the program that works for it. The model is the measurement's own.
pub struct Site {
    pub github: GitHub,
    folder: TempDir,
}

/// The program as a service; ended with the measurement, however that goes.
pub struct Service(Child);

impl Service {
    pub fn process(&self) -> u32 {
        self.0.id()
    }

    /// Has it stop in order, which removes its containers, and waits for it.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let asked = Command::new("kill").arg(self.process().to_string()).status()?;
        anyhow::ensure!(asked.success(), "the service has ended by itself");
        let begun = Instant::now();
        while self.0.try_wait()?.is_none() {
            anyhow::ensure!(begun.elapsed() < PATIENCE, "the service does not stop");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// How a run of the program went.
#[derive(Debug, Clone, Copy)]
pub struct Ran {
    pub started: Instant,
    pub peak_bytes: u64,
}

impl Site {
    pub async fn new(model: &Model) -> anyhow::Result<Self> {
        Self::of(model, &["acme/widgets".to_owned()]).await
    }

    /// Returns a site whose program looks after these repositories.
    pub async fn of(model: &Model, repositories: &[String]) -> anyhow::Result<Self> {
        let github = GitHub::start().await;
        for repository in repositories {
            github.repository(repository);
        }
        let folder = tempfile::Builder::new().prefix("coding-agent-bench-").tempdir()?;
        let config = json!({
            "task_sources": ["github"],
            "github": { "api_url": github.api_url(), "token": github.token(), "repositories": repositories },
            "llm": {
                "provider": "openai",
                "function_calling": false,
                "openai": { "base_url": model.openai_address(), "api_key": "sk-bench-0123456789", "model": "scripted" },
            },
            "command_executor": {
                "environments": { "python": IMAGE },
                "default_environment": "python",
                "executor_path": executor()?,
            },
        });
        // JSON is YAML.
        std::fs::write(folder.path().join("config.yaml"), config.to_string())?;
        Ok(Self { github, folder })
    }

    /// Has the program make native calls, for which it writes calls and results out as JSON
    /// otherwise.
    pub fn with_native_calls(self) -> anyhow::Result<Self> {
        self.configured(|config| config["llm"]["function_calling"] = json!(true))
    }

    /// Changes the configuration.
    pub fn configured(self, change: impl FnOnce(&mut Value)) -> anyhow::Result<Self> {
        let path = self.folder().join("config.yaml");
        let mut config: Value = serde_json::from_slice(&std::fs::read(&path)?)?;
        change(&mut config);
        std::fs::write(path, config.to_string())?;
        Ok(self)
    }

    /// Starts `coding-agent serve`.
    pub fn serve(&self) -> anyhow::Result<Service> {
        let mut command = self.command_to("serve")?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Service(command.spawn().context("the program cannot be started")?))
    }

    /// Returns how often the journal has this fact.
    pub fn count(&self, fact: &str) -> usize {
        let words = format!("\"fact\":\"{fact}\"");
        let files = std::fs::read_dir(self.folder().join("logs"))
            .into_iter()
            .flatten()
            .flatten();
        let journals = files.filter(|file| file.path().extension().is_some_and(|extension| extension == "jsonl"));
        let texts = journals.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        texts.map(|text| text.matches(&words).count()).sum()
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns `coding-agent run`, ready to be started.
    pub fn command(&self) -> anyhow::Result<Command> {
        self.command_to("run")
    }

    /// Returns the program with another of its commands.
    pub fn command_to(&self, verb: &str) -> anyhow::Result<Command> {
        let mut command = Command::new(program()?);
        command.env_clear();
        for name in ["PATH", "DOCKER_HOST"] {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        command.env("HOME", self.folder());
        command
            .args(["--config", "config.yaml", verb])
            .current_dir(self.folder());
        Ok(command)
    }

    /// Runs the program to its end, and fails unless a pull request came out of it.
    pub async fn deliver(&self) -> anyhow::Result<Ran> {
        let before = self.github.pulls().len();
        let mut command = tokio::process::Command::from(self.command()?);
        let started = Instant::now();
        let program = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("the program cannot be started")?;
        let peak = peak_bytes(program.id().context("the program has ended at once")?);
        let output = tokio::time::timeout(PATIENCE, program.wait_with_output()).await;
        let output = output.context("the program did not end")??;
        anyhow::ensure!(
            output.status.success() && self.github.pulls().len() == before + 1,
            "the run did not come to a pull request: {}\n{}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr),
            self.github.timeline()
        );
        Ok(Ran {
            started,
            peak_bytes: peak.await?,
        })
    }
}

/// Waits until something has come about.
pub async fn until(what: &str, is_so: impl Fn() -> bool) -> anyhow::Result<()> {
    let begun = Instant::now();
    while !is_so() {
        anyhow::ensure!(begun.elapsed() < PATIENCE, "waited in vain until {what}");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    Ok(())
}

/// Returns the folder that the build of this profile lies in.
pub fn folder_of_the_build() -> anyhow::Result<PathBuf> {
    let bench = std::env::current_exe()?;
    let folder = bench.parent().and_then(Path::parent);
    Ok(folder.context("the bench lies in no build folder")?.to_owned())
}

/// Returns the program, built in the same profile as this bench.
pub fn program() -> anyhow::Result<PathBuf> {
    built("coding-agent")
}

/// Returns the static executor that the set-up builds.
pub fn executor() -> anyhow::Result<PathBuf> {
    built("coding-agent-executor-static")
}

fn built(name: &str) -> anyhow::Result<PathBuf> {
    let path = folder_of_the_build()?.join(name);
    anyhow::ensure!(path.is_file(), "{} is missing; `make bench` builds it", path.display());
    Ok(path)
}
