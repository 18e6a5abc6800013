//! A program of the operator's that answers one question: the question on its stdin, the answer on
//! its stdout.
//!
//! It runs on the worker behind the guard, as an MCP server does, and so ends with the worker; it
//! has an empty folder of its own to work in and only the variables that its configuration names.
//! Its answer is bounded, and at its time-out it is killed with everything it started.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::Context;
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use uuid::Uuid;

use super::guard::GRACE;
use super::stdio::{GUARD_MARGIN, Said, drain};
use crate::process::ending::end_descendants;
use crate::process::search_path;
use crate::secret::Clean;

/// Most bytes of an answer.
const LONGEST_ANSWER: u64 = 20 * 1024 * 1024;
/// Where a process without a PATH looks for programs.
const USUAL_PATH: &str = "/bin:/usr/bin";
/// Age from which a folder belongs to no program any more: none runs for so long.
const ABANDONED: Duration = Duration::from_hours(24);
/// Exit code of the guard where the program could not be started.
const NOT_STARTED: i32 = 127;

/// A configured program.
pub struct Program {
    command: Vec<String>,
    env: BTreeMap<String, SecretString>,
    timeout: Duration,
    guard: PathBuf,
    /// The folder in which the folders of single calls are made.
    folder: PathBuf,
}

/// The reason why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    #[error("{program} cannot be started: {reason}")]
    NotFound { program: String, reason: String },
    #[error("{program} did not answer within {seconds} s and was ended")]
    TimedOut { program: String, seconds: u64 },
    #[error("{program} wrote more than {LONGEST_ANSWER} bytes and was ended")]
    TooLong { program: String },
    #[error("the answer of {program} is not text in UTF-8")]
    NotText { program: String },
    #[error("{program} ended with {status}{said}")]
    Failed {
        program: String,
        status: ExitStatus,
        /// The last lines that the program wrote to stderr, with words before them.
        said: String,
    },
    #[error("{program} could not be run: {reason}")]
    Machine { program: String, reason: String },
}

/// A folder that is removed with everything in it.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

impl Program {
    /// Creates a program to be asked. `guard` is the program with the subcommand `mcp-guard`,
    /// normally this one; the folders that the program works in are made in `folder`.
    pub fn new(
        command: Vec<String>,
        env: BTreeMap<String, SecretString>,
        timeout: Duration,
        guard: &Path,
        folder: &Path,
    ) -> Self {
        Self {
            command,
            env,
            timeout,
            guard: guard.to_owned(),
            folder: folder.to_owned(),
        }
    }

    /// Returns the program's name, for people.
    pub fn name(&self) -> &str {
        self.command.first().map_or("", String::as_str)
    }

    /// Returns where the program lies, as far as it is looked for by its own variables; the error
    /// says what is missing.
    pub fn find(&self) -> Result<PathBuf, String> {
        let name = self.name();
        if name.contains('/') {
            let path = PathBuf::from(name);
            return search_path::is_program(&path)
                .then_some(path)
                .ok_or_else(|| format!("{name} is no program that can be started"));
        }
        let folders = self
            .env
            .get("PATH")
            .map_or_else(|| USUAL_PATH.to_owned(), |path| path.expose_secret().to_owned());
        search_path::found_in(folders.split(':').map(PathBuf::from), name).ok_or_else(|| {
            format!("there is no program {name} in {folders}, and it gets no other PATH; name it with its whole path")
        })
    }

    /// Asks `question`. When the future is dropped, the program is ended.
    pub async fn answer(&self, question: &Clean) -> Result<String, ProgramError> {
        let machine = |error: anyhow::Error| ProgramError::Machine {
            program: self.name().to_owned(),
            reason: format!("{error:#}"),
        };
        let (folder, input) = self.prepare(question).await.map_err(machine)?;
        let mut guard = self.spawn(&folder, &input).map_err(|error| machine(error.into()))?;
        let said = Arc::default();
        let result = timeout(self.timeout, self.listen(&mut guard, &said)).await;
        let everything_ended = end(guard).await;
        if let Err(error) = everything_ended {
            tracing::warn!(target: "program", program = self.name(), "it could not be ended: {error:#}");
        }
        result.unwrap_or_else(|_| {
            Err(ProgramError::TimedOut {
                program: self.name().to_owned(),
                seconds: self.timeout.as_secs(),
            })
        })
    }

    async fn prepare(&self, question: &Clean) -> anyhow::Result<(Folder, PathBuf)> {
        let folder = Folder(self.folder.join(Uuid::now_v7().to_string()));
        let input = folder.0.join("question");
        let context = || format!("{} cannot be written", input.display());
        tokio::fs::create_dir_all(folder.0.join("work"))
            .await
            .with_context(context)?;
        tokio::fs::write(&input, question.as_str())
            .await
            .with_context(context)?;
        Ok((folder, input))
    }

    fn spawn(&self, folder: &Folder, input: &Path) -> std::io::Result<Child> {
        let configured = self.env.iter().map(|(name, value)| (name, value.expose_secret()));
        Command::new(&self.guard)
            .arg("mcp-guard")
            .arg("--input")
            .arg(input)
            .arg("--")
            .args(&self.command)
            .env_clear()
            .envs(configured)
            .current_dir(folder.0.join("work"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .spawn()
    }

    async fn listen(&self, guard: &mut Child, said: &Arc<std::sync::Mutex<Said>>) -> Result<String, ProgramError> {
        let program = self.name().to_owned();
        let machine = |error: std::io::Error| ProgramError::Machine {
            program: program.clone(),
            reason: error.to_string(),
        };
        let draining = guard
            .stderr
            .take()
            .map(|stderr| tokio::spawn(drain(stderr, program.clone(), Arc::clone(said))));
        let Some(answer) = read(guard.stdout.take()).await.map_err(machine)? else {
            return Err(ProgramError::TooLong { program });
        };
        let status = guard.wait().await.map_err(machine)?;
        if let Some(draining) = draining {
            // Nobody is left who could hold the pipe open.
            let _ = draining.await;
        }
        let said = said.lock().unwrap_or_else(PoisonError::into_inner).last();
        if status.code() == Some(NOT_STARTED) && said.contains("cannot be started") {
            let reason = said.rsplit("cannot be started: ").next().unwrap_or(&said).to_owned();
            return Err(ProgramError::NotFound { program, reason });
        }
        if !status.success() {
            let said = if said.is_empty() {
                said
            } else {
                format!("; it said last: {said}")
            };
            return Err(ProgramError::Failed { program, status, said });
        }
        String::from_utf8(answer).map_err(|_| ProgramError::NotText { program })
    }
}

/// Removes the folders of programs that were left in `folder` when a worker was killed.
pub fn sweep(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let age = entry.metadata().and_then(|found| found.modified());
        let age = age.ok().and_then(|at| at.elapsed().ok());
        if age.is_some_and(|age| age >= ABANDONED) {
            drop(Folder(entry.path()));
        }
    }
}

/// Reads the answer to its end; `None` if it is too long.
async fn read(stdout: Option<impl AsyncRead + Unpin>) -> std::io::Result<Option<Vec<u8>>> {
    let mut answer = Vec::new();
    if let Some(stdout) = stdout {
        stdout.take(LONGEST_ANSWER + 1).read_to_end(&mut answer).await?;
    }
    Ok((answer.len() as u64 <= LONGEST_ANSWER).then_some(answer))
}

/// Ends all that is left of the program, then its guard.
async fn end(mut guard: Child) -> anyhow::Result<()> {
    let Some(id) = guard.id() else {
        return Ok(());
    };
    // The guard adopts what the program leaves behind, so all of it is found below it.
    let _ = tokio::task::spawn_blocking(move || end_descendants(id, GRACE)).await?;
    drop(guard.stdin.take());
    if timeout(GUARD_MARGIN, guard.wait()).await.is_err() {
        guard.kill().await?;
    }
    Ok(())
}
