//! Where tests are run: a container without a network for each language, with a folder for each
//! question. Nothing of a task runs on the machine itself.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

use crate::task::{Files, Language};

/// The longest time that tests may take. A wrong mend may run for ever.
const PATIENCE: &str = "120";
/// The longest life of a container, in seconds, should nobody remove it.
const LIFE: &str = "21600";
/// The longest time for anything that is asked of the engine.
const ENGINE: Duration = Duration::from_mins(5);

pub struct Bench {
    container: String,
}

/// How tests went.
#[derive(Debug)]
pub struct Tested {
    pub passed: bool,
    pub output: String,
}

impl Bench {
    pub async fn start(language: Language) -> anyhow::Result<Self> {
        let image = format!("coding-agent-executor-{}:latest", language.environment());
        let arguments = [
            "run",
            "--detach",
            "--rm",
            "--init",
            "--network=none",
            "--entrypoint=",
            "--memory=2g",
            "--pids-limit=512",
            "--label=coding-agent.solve-rate=1",
            "--user=1000:1000",
            "--env=HOME=/tmp",
            "--env=GOFLAGS=-mod=mod",
            &image,
            "sleep",
            LIFE,
        ];
        let started = docker(&arguments, None).await?;
        anyhow::ensure!(
            started.passed,
            "no container of {image} can be started (`make images` builds it): {}",
            started.output
        );
        Ok(Self {
            container: started.output.lines().last().unwrap_or_default().trim().to_owned(),
        })
    }

    /// Lays files into a folder of their own, and runs a command there.
    pub async fn test(&self, files: &Files, command: &str) -> anyhow::Result<Tested> {
        let folder = format!("/tmp/{}", uuid::Uuid::new_v4());
        let tar = packed(files)?;
        let script = format!(
            "mkdir {folder} && cd {folder} && tar -x && timeout --kill-after=5 {PATIENCE} sh -c '{}' </dev/null; \
             status=$?; cd /; rm -rf {folder}; exit $status",
            command.replace('\'', "'\\''")
        );
        docker(
            &["exec", "--interactive", &self.container, "sh", "-c", &script],
            Some(tar),
        )
        .await
    }

    /// Removes the container.
    pub async fn end(self) -> anyhow::Result<()> {
        docker(&["rm", "--force", &self.container], None).await.map(drop)
    }
}

fn packed(files: &Files) -> anyhow::Result<Vec<u8>> {
    let mut tar = tar::Builder::new(Vec::new());
    for (path, content) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(content.len().try_into()?);
        header.set_mode(0o644);
        tar.append_data(&mut header, path, content.as_bytes())?;
    }
    Ok(tar.into_inner()?)
}

async fn docker(arguments: &[&str], input: Option<Vec<u8>>) -> anyhow::Result<Tested> {
    let mut child = Command::new("docker")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("docker cannot be started")?;
    let mut stdin = child.stdin.take().context("docker has no stdin")?;
    let writing = async move {
        // A command that ends early does not read it all.
        let _ = stdin.write_all(&input.unwrap_or_default()).await;
    };
    let both = async { tokio::join!(writing, child.wait_with_output()).1 };
    let output = tokio::time::timeout(ENGINE, both)
        .await
        .context("the engine does not answer")??;
    let text = [output.stdout, output.stderr].concat();
    Ok(Tested {
        passed: output.status.success(),
        output: String::from_utf8_lossy(&text).into_owned(),
    })
}
