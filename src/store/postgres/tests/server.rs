//! The server: the one that the variable names, else one that is started for a test.

use std::process::Stdio;

use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdin, Command};

use super::SERVER;

/// A server that is there for as long as this.
pub(super) struct Running {
    pub(super) address: String,
    /// Closed, it ends the command that the server was started for, and the server with it.
    _stdin: Option<ChildStdin>,
    _child: Option<Child>,
}

/// Returns a server.
#[expect(
    clippy::disallowed_methods,
    reason = "`make test-postgres` names the server in a variable"
)]
pub(super) async fn start() -> Running {
    match std::env::var(SERVER) {
        Ok(address) => Running {
            address,
            _stdin: None,
            _child: None,
        },
        Err(_) => own().await,
    }
}

/// Starts a server that only this test has, so that it may be disturbed.
pub(super) async fn own() -> Running {
    let mut child = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/scripts/with-postgres"))
        .args(["sh", "-c", "echo \"$CODING_AGENT_TEST_POSTGRES\"; cat >/dev/null"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        // What outlives the test for a moment must not hold its output.
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let address = lines
        .next_line()
        .await
        .unwrap()
        .expect("PostgreSQL: `scripts/setup test` installs it");
    Running {
        address,
        _stdin: child.stdin.take(),
        _child: Some(child),
    }
}
