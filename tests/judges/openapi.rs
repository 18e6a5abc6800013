//! A validator that others wrote reads the OpenAPI document of the program, and judges its answers
//! by it.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::python::judge;

/// The token of the user who asks.
pub(crate) const TOKEN: &str = "a-token-of-the-judge-0123456789";

/// `coding-agent dashboard` without a forge, ended when it is dropped.
pub(crate) struct Served {
    child: Child,
    pub(crate) url: String,
    _folder: TempDir,
}

impl Served {
    /// Starts it with this line more in its section `http`.
    pub(crate) fn with(line: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.yaml");
        let users = format!("{{judge: {{token: {TOKEN}, can: approve}}}}");
        let text = format!("http:\n  listen: '127.0.0.1:0'\n  users: {users}\n  {line}\n");
        std::fs::write(&config, text).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_coding-agent"));
        command.arg("--config").arg(&config).arg("dashboard");
        let mut child = command
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = lines.next().unwrap().unwrap();
        let url = line.split("is at ").nth(1).unwrap().trim().to_owned();
        Self {
            child,
            url,
            _folder: folder,
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn the_document_is_valid_and_describes_what_is_answered() {
    let served = Served::with("metrics: true");
    judge("openapi_document.py", &[("DASHBOARD", &served.url), ("TOKEN", TOKEN)]);
}
