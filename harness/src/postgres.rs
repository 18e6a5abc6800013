//! A PostgreSQL server of a harness's own, which can crash and come back.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use anyhow::Context;

/// A server in a temporary folder. It ends when this is dropped.
pub struct Postgres {
    /// The address of its database, on a socket in that folder.
    pub address: String,
    /// The command, with its first arguments, that stops and starts the server.
    control: Vec<String>,
    child: Child,
}

impl Postgres {
    /// Starts a server; `None` where PostgreSQL is not installed.
    pub fn start() -> anyhow::Result<Option<Self>> {
        let told = "echo \"$CODING_AGENT_TEST_POSTGRES\"; echo \"$CODING_AGENT_TEST_POSTGRES_CONTROL\"; cat >/dev/null";
        let mut child = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/with-postgres"))
            .args(["sh", "-c", told])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("scripts/with-postgres cannot be started")?;
        let mut lines = BufReader::new(child.stdout.take().context("its output was asked for")?).lines();
        let (Some(address), Some(control)) = (lines.next().transpose()?, lines.next().transpose()?) else {
            child.wait()?;
            return Ok(None);
        };
        Ok(Some(Self {
            address,
            control: control.split_whitespace().map(str::to_owned).collect(),
            child,
        }))
    }

    /// Returns the folder that holds the server's socket.
    pub fn folder(&self) -> anyhow::Result<&str> {
        let folder = self
            .address
            .split("host=")
            .nth(1)
            .and_then(|rest| rest.split('&').next());
        folder.context("the address names no folder")
    }

    /// Ends the server without any of what it does when it is stopped in order, as a crash would.
    pub fn crash(&self) -> anyhow::Result<()> {
        self.control(&["-m", "immediate", "stop"])
    }

    /// Starts the server that has crashed; returns when it answers.
    pub fn come_back(&self) -> anyhow::Result<()> {
        self.control(&["start"])
    }

    fn control(&self, arguments: &[&str]) -> anyhow::Result<()> {
        let (program, first) = self.control.split_first().context("the server has a command")?;
        // What is started outlives the command, and would hold its output.
        let ended = Command::new(program)
            .args(first)
            .args(arguments)
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .with_context(|| format!("{program} cannot be started"))?;
        anyhow::ensure!(ended.success(), "{program} {} ended with {ended}", arguments.join(" "));
        Ok(())
    }

    /// Returns what the database says to a query: its rows in lines, columns with `|` between.
    pub fn ask(&self, query: &str) -> anyhow::Result<String> {
        let said = Command::new("psql")
            .args([
                "--no-psqlrc",
                "--quiet",
                "--tuples-only",
                "--no-align",
                "--command",
                query,
            ])
            .arg(&self.address)
            .output()
            .context("psql cannot be started")?;
        anyhow::ensure!(
            said.status.success(),
            "{query}: {}",
            String::from_utf8_lossy(&said.stderr)
        );
        Ok(String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        // The command ends with its input, and the server with the command.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}
