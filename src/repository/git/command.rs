//! Starts git on the worker; no other module does.
//!
//! Guarantees: nothing of the caller's environment except the search path, proxies and
//! certificates; no configuration but ours; no hook, filter, helper, pager, prompt or submodule;
//! limits of time, processor time and memory; no process left behind when the caller stops waiting.
//! Credentials are passed in the environment of the one process and removed from its messages.

use std::ffi::OsStr;
use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::process::{Pid, Signal, kill_process_group};
use secrecy::{ExposeSecret, SecretString};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use crate::repository::git::failure::{STALLED, classify};
use crate::repository::git::hardening::{ENVIRONMENT, PASSED_ON, SETTINGS, SILENCE};
use crate::repository::git::limits::{Effort, Limits};
use crate::repository::git::process_group::ProcessGroup;
use crate::repository::git::program::program;
use crate::repository::git::progress::{MAX_COMPLAINT, Told, drain, tail, without};
use crate::repository::git::silence::until_silent;
use crate::repository::{Config, RepositoryError};

/// Oldest supported git: 2.31 introduced configuration in the environment (`GIT_CONFIG_COUNT`).
const OLDEST: (u32, u32) = (2, 31);
const MAX_OUTPUT: usize = 64 * 1024 * 1024;

/// A git command that is not started yet.
pub(in crate::repository) struct Git<'a> {
    command: Command,
    what: String,
    limits: Limits,
    input: Input<'a>,
    hidden: Vec<SecretString>,
    told: Option<Told<'a>>,
    /// How long it may stand still.
    patience: Option<Duration>,
}

/// The standard input of a git command.
enum Input<'a> {
    Nothing,
    Bytes(Vec<u8>),
    Stream {
        source: &'a mut (dyn AsyncRead + Send + Unpin),
        limit: u64,
    },
    /// An open file that git does not read; it stays open while the process lives.
    Held(File),
}

/// The outcome of writing the standard input.
#[derive(Debug)]
pub(in crate::repository) enum InputEnd {
    Whole,
    /// The source had more than the limit.
    TooMuch,
    Broken(std::io::Error),
}

/// The result of a git command.
#[derive(Debug)]
pub(in crate::repository) struct GitExit {
    pub(in crate::repository) code: Option<i32>,
    pub(in crate::repository) complaint: String,
    pub(in crate::repository) fed: InputEnd,
    /// True if the reader stopped early and git was killed.
    pub(in crate::repository) was_cut: bool,
}

/// Returns the version of the installed git; fails if it is too old.
pub async fn version(config: &Config) -> Result<String, RepositoryError> {
    let said = Git::new(config, "git").arg("version").text().await?;
    let version = said.split_whitespace().nth(2).unwrap_or_default().to_owned();
    let mut numbers = version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found < OLDEST {
        return Err(RepositoryError::Unexpected {
            what: format!("git {version}"),
            reason: format!("this is too old: install git {}.{} or newer", OLDEST.0, OLDEST.1),
        });
    }
    Ok(version)
}

impl<'a> Git<'a> {
    /// Prepares a command; `what` names the intention in errors.
    #[expect(
        clippy::disallowed_methods,
        reason = "git is given PATH, proxies and the like of the worker's"
    )]
    pub(in crate::repository) fn new(config: &Config, what: impl Into<String>) -> Self {
        let mut command = Command::new(program());
        command.env_clear().envs(ENVIRONMENT).current_dir("/");
        for name in PASSED_ON {
            if let Some(value) = std::env::var_os(name) {
                command.env(name, value);
            }
        }
        for setting in SETTINGS {
            command.args(["-c", setting]);
        }
        let patience = format!("http.lowSpeedTime={}", config.stall_seconds);
        command.args(["-c", SILENCE, "-c", &patience]);
        Self {
            command,
            what: what.into(),
            limits: Effort::LookUp.limits(config),
            input: Input::Nothing,
            hidden: Vec::new(),
            told: None,
            patience: None,
        }
    }

    /// Sets the limits for `effort`; the default are those of a look-up.
    pub(in crate::repository) fn with(mut self, effort: Effort, config: &Config) -> Self {
        self.limits = effort.limits(config);
        if effort == Effort::Transfer {
            // Silence is noticed here, since curl takes signs of life for it.
            self.command.env("GIT_HTTP_LOW_SPEED_LIMIT", "0");
            self.patience = Some(Duration::from_secs(config.stall_seconds));
        }
        self
    }

    pub(in crate::repository) fn what(&self) -> &str {
        &self.what
    }

    pub(in crate::repository) fn directory(mut self, directory: &Path) -> Self {
        self.command.arg("--git-dir").arg(directory);
        self
    }

    pub(in crate::repository) fn current_directory(mut self, directory: &Path) -> Self {
        self.command.current_dir(directory);
        self
    }

    pub(in crate::repository) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    pub(in crate::repository) fn args<Arg: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = Arg>) -> Self {
        self.command.args(args);
        self
    }

    /// Wraps the command in another program. Arguments must be added before.
    pub(in crate::repository) fn started_by(mut self, wrap: impl FnOnce(&std::process::Command) -> Command) -> Self {
        self.command = wrap(self.command.as_std());
        self
    }

    pub(in crate::repository) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(in crate::repository) fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Input::Bytes(bytes.into());
        self
    }

    pub(in crate::repository) fn stream(mut self, source: &'a mut (dyn AsyncRead + Send + Unpin), limit: u64) -> Self {
        self.input = Input::Stream { source, limit };
        self
    }

    /// Lets git keep `file` open, and with it a lock on it, even if it outlives this process.
    pub(in crate::repository) fn holding(mut self, file: File) -> Self {
        self.input = Input::Held(file);
        self
    }

    /// Calls `told` with each line about the progress.
    pub(in crate::repository) fn telling(mut self, told: Told<'a>) -> Self {
        self.told = Some(told);
        self
    }

    /// Logs in at `origin` (`https://host/`) through this one process's environment.
    pub(in crate::repository) fn login(self, origin: &str, user: &str, password: &SecretString) -> Self {
        let basic = STANDARD.encode(format!("{user}:{}", password.expose_secret()));
        let mut git = self
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", format!("http.{origin}.extraHeader"))
            .env("GIT_CONFIG_VALUE_0", format!("Authorization: Basic {basic}"));
        git.hidden = vec![password.clone(), basic.into()];
        git
    }

    /// Runs the command and returns its output of at most [`MAX_OUTPUT`]; fails unless it succeeds.
    pub(in crate::repository) async fn bytes(self) -> Result<Vec<u8>, RepositoryError> {
        let what = self.what.clone();
        let mut output = Vec::new();
        let ended = self
            .each(|chunk| {
                output.extend_from_slice(chunk);
                if output.len() > MAX_OUTPUT {
                    return ControlFlow::Break(());
                }
                ControlFlow::Continue(())
            })
            .await?;
        if ended.was_cut {
            let reason = format!("git's answer is longer than {MAX_OUTPUT} bytes");
            return Err(RepositoryError::Unexpected { what, reason });
        }
        if ended.code == Some(0) {
            return Ok(output);
        }
        // `push --porcelain` prints why a branch was rejected on its standard output.
        let said = String::from_utf8_lossy(&output[..output.len().min(MAX_COMPLAINT)]).into_owned();
        Err(classify(&what, format!("{}\n{said}", ended.complaint).trim()))
    }

    /// Runs the command like [`Git::bytes`], and returns its output as text without the line end.
    pub(in crate::repository) async fn text(self) -> Result<String, RepositoryError> {
        let output = self.bytes().await?;
        Ok(String::from_utf8_lossy(&output).trim_end().to_owned())
    }

    /// Runs the command and returns true for exit code 0, false for 1; any other is an error.
    pub(in crate::repository) async fn answer(self) -> Result<bool, RepositoryError> {
        let what = self.what.clone();
        let ended = self.each(|_| ControlFlow::Continue(())).await?;
        match ended.code {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(classify(&what, &ended.complaint)),
        }
    }

    /// Runs the command and calls `take` with each chunk of its output, until the end or until
    /// `take` breaks. The output is not bounded.
    pub(in crate::repository) async fn each(
        self,
        take: impl FnMut(&[u8]) -> ControlFlow<()> + Send,
    ) -> Result<GitExit, RepositoryError> {
        let (what, limits) = (self.what.clone(), self.limits);
        let (hidden, told) = (self.hidden.clone(), self.told);
        let lost = |error: &std::io::Error| RepositoryError::Unexpected {
            what: what.clone(),
            reason: format!("git was lost: {error}"),
        };
        let patience = self.patience;
        let (mut child, mut group, input) = self.start()?;
        let leader = group.leader();
        let standing_still = async {
            match patience {
                Some(patience) => until_silent(leader, patience).await,
                None => std::future::pending().await,
            }
        };
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let work = async {
            let end = || {
                if let Some(pid) = leader {
                    let _ = kill_process_group(pid, Signal::KILL);
                }
            };
            let feeding = async {
                let fed = feed(stdin, input).await;
                if !matches!(fed, InputEnd::Whole) {
                    end();
                }
                fed
            };
            let reading = async {
                let was_cut = drain(stdout, take).await;
                if matches!(was_cut, Ok(true)) {
                    end();
                }
                was_cut
            };
            let (fed, was_cut, complaint) = tokio::join!(feeding, reading, tail(stderr, told));
            let status = child.wait().await?;
            let complaint = match status.signal() {
                Some(signal) if signal == Signal::XCPU.as_raw() => limits.used_up(),
                _ => without(&complaint, &hidden),
            };
            Ok::<_, std::io::Error>(GitExit {
                code: status.code(),
                complaint,
                fed,
                was_cut: was_cut?,
            })
        };
        // A future of several kilobytes, which every stage of a run would carry.
        let working = Box::pin(timeout(limits.time, work));
        let ended = tokio::select! {
            ended = working => ended,
            () = standing_still => {
                return Err(RepositoryError::Unavailable {
                    what,
                    reason: STALLED.to_owned(),
                });
            }
        };
        let ended = ended.map_err(|_| RepositoryError::Unavailable {
            what: what.clone(),
            reason: limits.too_late(),
        })?;
        group.is_over();
        ended.map_err(|error| lost(&error))
    }

    /// Starts the command. The caller reads its output and writes its input with [`feed`].
    pub(in crate::repository) fn start(mut self) -> Result<(Child, ProcessGroup, PendingInput<'a>), RepositoryError> {
        let (stdin, feed) = match std::mem::replace(&mut self.input, Input::Nothing) {
            Input::Nothing => (Stdio::null(), PendingInput(Input::Nothing)),
            Input::Held(file) => (Stdio::from(file), PendingInput(Input::Nothing)),
            input @ (Input::Bytes(_) | Input::Stream { .. }) => (Stdio::piped(), PendingInput(input)),
        };
        let (child, group) = self.spawn(stdin, Stdio::piped())?;
        Ok((child, group, feed))
    }

    /// Starts a command that is asked again and again through its standard input. What it complains
    /// of is not read, and must not make it wait.
    pub(in crate::repository) fn start_open(self) -> Result<(Child, ProcessGroup), RepositoryError> {
        self.spawn(Stdio::piped(), Stdio::null())
    }

    fn spawn(mut self, stdin: Stdio, stderr: Stdio) -> Result<(Child, ProcessGroup), RepositoryError> {
        let mut child = self
            .command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(stderr)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| RepositoryError::Unexpected {
                what: self.what.clone(),
                reason: format!("git cannot be started ({error}): install git, and see that it is in PATH"),
            })?;
        let pid = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(Err(error)) = pid.map(|pid| self.limits.put_on(pid)) {
            let _ = child.start_kill();
            return Err(RepositoryError::Unexpected {
                what: self.what,
                reason: format!("git cannot be limited in memory and time ({error}), so it is not run"),
            });
        }
        Ok((child, ProcessGroup::led_by(pid)))
    }
}

/// The input of a started command.
pub(in crate::repository) struct PendingInput<'a>(Input<'a>);

/// Writes the input. It is no error if git stops reading; its exit code counts.
pub(in crate::repository) async fn feed(stdin: Option<ChildStdin>, feed: PendingInput<'_>) -> InputEnd {
    let Some(mut stdin) = stdin else { return InputEnd::Whole };
    match feed.0 {
        Input::Nothing | Input::Held(_) => InputEnd::Whole,
        Input::Bytes(bytes) => {
            let _ = stdin.write_all(&bytes).await;
            InputEnd::Whole
        }
        Input::Stream { source, limit } => {
            let mut passed: u64 = 0;
            let mut chunk = vec![0; 64 * 1024];
            loop {
                match source.read(&mut chunk).await {
                    Ok(0) => return InputEnd::Whole,
                    Ok(length) => {
                        passed += length as u64;
                        if passed > limit {
                            return InputEnd::TooMuch;
                        }
                        if stdin.write_all(&chunk[..length]).await.is_err() {
                            return InputEnd::Whole;
                        }
                    }
                    Err(error) => return InputEnd::Broken(error),
                }
            }
        }
    }
}
