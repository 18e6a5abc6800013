//! The program between a fake forge, a real engine and a real model, in a folder of its own.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use coding_agent_harness::installation::{self, Installation};
use serde_json::{Value, json};
use tokio::process::Command;

use crate::fake::github::{GitHub, Item};
use crate::relay::{Relay, Trouble};
use crate::server::{Server, WINDOW};

pub const TRIGGER: &str = "coding agent";

/// The longest time that one run of the program may take. Its own limits end it earlier.
const PATIENCE: Duration = Duration::from_mins(4);

/// The most model turns of a task: a model that understands nothing goes on for ever.
const MOST_TURNS: u32 = 3;

pub struct Site {
    pub github: GitHub,
    pub relay: Relay,
    config: Value,
    installation: Installation,
}

/// How the program ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    /// The text that it printed.
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
        let installation = Installation::new("real-model")?;
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
            "command_executor": installation::with(installation::executor()?, &json!({ "timeout_seconds": 10 })),
        });
        Ok(Self {
            github,
            relay,
            config,
            installation,
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
        self.installation.configure(self.config.clone())?;
        let mut command = Command::from(self.installation.command(arguments)?);
        let child = command
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

    /// Returns the facts of one kind from the journal.
    pub fn facts(&self, kind: &str) -> Vec<Value> {
        let mut facts = self.installation.journal();
        facts.retain(|fact| fact["fact"] == kind);
        facts
    }

    /// Returns what is left of the run: containers, processes, temporary files.
    pub async fn left_over(&self) -> anyhow::Result<Vec<String>> {
        let mut left = self.installation.containers().await?;
        for entry in std::fs::read_dir(self.installation.temporary())? {
            left.push(entry?.path().display().to_string());
        }
        left.extend(self.installation.processes());
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
        let exchanges = json!(exchanges).to_string();
        let folder = self.installation.keep(&self.github.timeline());
        let _ = std::fs::write(folder.join("exchanges.json"), exchanges);
        folder
    }
}
