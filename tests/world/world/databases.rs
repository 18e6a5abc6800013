//! The store of a world: a file, or in PostgreSQL a schema of its own on the server that a variable
//! names, or on one that is started for a test.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use sqlx::ConnectOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use uuid::Uuid;

use crate::world::World;

/// The variable that names a server on which every world has its store.
const SERVER: &str = "CODING_AGENT_TEST_POSTGRES";

/// A server, there for as long as this.
pub struct Database {
    pub address: String,
    /// The command that stops and starts the server; empty for a server of all tests.
    control: String,
    child: Option<Child>,
}

impl Database {
    /// Returns the server that the variable names, or starts one.
    pub fn start() -> Self {
        if let Ok(address) = std::env::var(SERVER) {
            return Self {
                address,
                control: String::new(),
                child: None,
            };
        }
        Self::own()
    }

    /// Starts a server that no other test uses.
    pub fn own() -> Self {
        let told = "echo \"$CODING_AGENT_TEST_POSTGRES\"; echo \"$CODING_AGENT_TEST_POSTGRES_CONTROL\"; cat >/dev/null";
        let mut child = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/with-postgres"))
            .args(["sh", "-c", told])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // What outlives the test for a moment must not hold its output.
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut line = || lines.next().and_then(Result::ok).unwrap_or_default();
        let (address, control) = (line(), line());
        assert!(
            !address.is_empty(),
            "PostgreSQL does not start; `scripts/setup test` installs it"
        );
        Self {
            address,
            control,
            child: Some(child),
        }
    }

    /// Ends the server of this test without order, as a crash would.
    pub fn crash(&self) {
        self.control("-m immediate stop");
    }

    /// Starts the server that has crashed; returns when it answers.
    pub fn comes_back(&self) {
        self.control("start");
    }

    fn control(&self, deed: &str) {
        assert!(!self.control.is_empty(), "others use this server");
        // What is started outlives the command, and would hold its output.
        let ended = Command::new("sh")
            .args(["-c", &format!("cd / && exec {} {deed}", self.control)])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(ended.success(), "{deed}: {ended}");
    }

    /// Waits until the server is so old that workers without a session are taken for dead.
    pub async fn grows_old(&self) {
        let is_old = "SELECT clock_timestamp() - pg_postmaster_start_time() > INTERVAL '11 seconds'";
        while Self::ask(&self.address, is_old) != "t" {
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    }

    /// Makes a schema; returns the address of the database in it.
    pub fn schema(&self) -> String {
        schema_on(&self.address)
    }

    /// Runs a query on the database at this address; returns what it says.
    pub fn ask(address: &str, query: &str) -> String {
        let said = Command::new("psql")
            .args([
                "--no-psqlrc",
                "--quiet",
                "--tuples-only",
                "--no-align",
                "--command",
                query,
                address,
            ])
            .output()
            .unwrap();
        assert!(
            said.status.success(),
            "{query}: {}",
            String::from_utf8_lossy(&said.stderr)
        );
        String::from_utf8_lossy(&said.stdout).trim().to_owned()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // The command ends with its input, and the server with the command.
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

fn schema_on(server: &str) -> String {
    let name = format!("w{}", Uuid::new_v4().simple());
    Database::ask(server, &format!("CREATE SCHEMA {name}"));
    format!("{server}&options=-csearch_path%3D{name}")
}

/// Returns the section `store` of a world's configuration, where a server is named for all.
pub(super) fn store_of_all() -> Option<Value> {
    let server = std::env::var(SERVER).ok()?;
    Some(json!({ "url": schema_on(&server) }))
}

impl World {
    /// Returns the address of the database on a server that is the store, if it is not a file.
    pub fn store_url(&self) -> Option<String> {
        self.config["store"]["url"].as_str().map(str::to_owned)
    }

    /// Opens the store that is a file.
    pub async fn sqlite(&self) -> SqliteConnection {
        let file = self.state_dir().join("coding-agent.db");
        SqliteConnectOptions::new().filename(file).connect().await.unwrap()
    }

    /// Makes the program the one of another machine: with a state folder and logs of its own.
    pub fn moves_to(&mut self, machine: &str) {
        self.configure(|config| {
            config["state_dir"] = json!(format!("./state-{machine}"));
            config["logs"] = json!({ "directory": format!("./logs-{machine}") });
        });
    }

    /// Goes back to the machine that there was first.
    pub fn comes_back(&mut self) {
        self.configure(|config| {
            config["state_dir"] = json!("./state");
            config["logs"] = json!({ "directory": "./logs" });
        });
    }
}
