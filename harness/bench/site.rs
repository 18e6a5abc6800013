//! The program, configured for the fakes in a folder of its own.

use std::ops::Deref;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use coding_agent_harness::installation::{self, Installation, scripted};
use serde_json::{Value, json};

use crate::fake::github::GitHub;
use crate::fake::model::Model;
use crate::process::peak_bytes;

/// The longest time that one run of the program may take, or anything else that is waited for.
const PATIENCE: Duration = Duration::from_mins(10);

/// The time between two looks whether something has come about.
pub const LOOK_AGAIN: Duration = Duration::from_millis(500);

/// A GitHub, and the program that works for it. The model is the measurement's own.
pub struct Site {
    pub github: GitHub,
    installation: Installation,
}

/// The measurements reach for the folder of the program itself.
impl Deref for Site {
    type Target = Installation;

    fn deref(&self) -> &Installation {
        &self.installation
    }
}

/// The program as a service; ended with the measurement, however that goes.
pub struct Service(Child);

impl Service {
    pub fn of(program: Child) -> Self {
        Self(program)
    }

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
        let installation = Installation::new("bench")?;
        installation.configure(json!({
            "task_sources": ["github"],
            "github": { "api_url": github.api_url(), "token": github.token(), "repositories": repositories },
            "llm": scripted(model, "sk-bench-0123456789"),
            "command_executor": installation::executor()?,
        }))?;
        Ok(Self { github, installation })
    }

    /// Has the program make native calls, for which it writes calls and results out as JSON
    /// otherwise.
    pub fn with_native_calls(self) -> anyhow::Result<Self> {
        self.configured(|config| config["llm"]["function_calling"] = json!(true))
    }

    /// Changes the configuration.
    pub fn configured(self, change: impl FnOnce(&mut Value)) -> anyhow::Result<Self> {
        self.reconfigure(change)?;
        Ok(self)
    }

    /// Starts `coding-agent serve`.
    pub fn serve(&self) -> anyhow::Result<Service> {
        let mut command = self.command(&["serve"])?;
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(Service(command.spawn().context("the program cannot be started")?))
    }

    /// Returns how often the journal has this fact.
    pub fn count(&self, fact: &str) -> usize {
        let words = format!("\"fact\":\"{fact}\"");
        let lines = self.journal_lines();
        lines.iter().filter(|line| line.contains(&words)).count()
    }

    /// Runs the program to its end, and fails unless a pull request came out of it.
    pub async fn deliver(&self) -> anyhow::Result<Ran> {
        let before = self.github.pulls().len();
        let started = Instant::now();
        let program = self.start_run()?;
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
