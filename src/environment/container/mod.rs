//! A running container and its attached processes.
//!
//! A failed process is a [`ProcessExit`]. A container that died is
//! [`EnvironmentError::ContainerLost`], and a new one can replace it.

pub(super) mod user; // the user of a container
pub(super) mod way_out; // proxy variables
pub(super) mod certificates; // whom programs in it trust
pub(super) mod name; // labels and names
pub(super) mod specification; // describes containers, as pure functions of the configuration

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::sleep;

use crate::environment::error::EnvironmentError;
use crate::environment::processes::{ContainerState, Failure, ProcessExit, Processes, Streams};

/// Time limit between the end of a process and the end of a container that died with it.
const DYING_LIMIT: Duration = Duration::from_millis(500);

/// A started container. Dropping it does not remove it: [`Container::remove`] does, or the sweep
/// after a crash.
#[derive(Clone, Debug)]
pub struct Container {
    engine: Arc<dyn Processes>,
    id: String,
    /// [`Container::run`] gives up when no input was taken for this long.
    silence: Duration,
    /// Names of the service containers that share its network and are removed with it.
    services: Vec<String>,
    /// The place under which its set-up may be kept; `None` if it may not.
    place: Option<String>,
    /// The kept set-up that it was started from.
    set_up: Option<String>,
    /// The digest of its environment's image; empty if it was not looked up.
    digest: String,
    /// The folders that the image declares to be volumes.
    volumes: Vec<String>,
    /// The streams of the executor that was started with it, until somebody takes them.
    first: FirstProcess,
}

/// The streams of the executor that was started with a container. They are there once, for whoever
/// takes them first.
#[derive(Clone, Default)]
struct FirstProcess(Arc<Mutex<Option<Streams>>>);

impl fmt::Debug for FirstProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("FirstProcess")
    }
}

/// A process in the container with its streams attached.
///
/// Dropping `stdin` and `stdout` detaches from the process without ending it: only the removal of
/// the container is sure to end it.
pub struct Attached {
    /// Must be shut down to close the process' input; dropping it is not enough.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Must be read while writing, or both sides deadlock.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Resolves to the exit code and the end of stderr; await it after stdout has ended.
    pub ending: BoxFuture<'static, Result<ProcessExit, EnvironmentError>>,
}

impl Container {
    pub(super) fn new(engine: Arc<dyn Processes>, id: String, silence: Duration) -> Self {
        Self {
            engine,
            id,
            silence,
            services: Vec::new(),
            place: None,
            set_up: None,
            digest: String::new(),
            volumes: Vec::new(),
            first: FirstProcess::default(),
        }
    }

    pub(super) fn with_first(mut self, streams: Option<Streams>) -> Self {
        self.first = FirstProcess(Arc::new(Mutex::new(streams)));
        self
    }

    /// Returns the streams of the executor that was started with the container, to whoever asks
    /// first: those of the container's own process, or of one that only the worker opened. `None`
    /// for a container that was taken over, and where there are none.
    pub fn take_first(&self) -> Option<Streams> {
        self.first.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the reason why a stream of the container broke off: it is lost, or else `what` with
    /// `reason`.
    pub async fn broken(&self, what: &str, reason: &str) -> EnvironmentError {
        match self.require_surviving().await {
            Ok(()) => unexpected(what, reason),
            Err(error) => error,
        }
    }

    pub(super) fn of_image(mut self, digest: String) -> Self {
        self.digest = digest;
        self
    }

    pub(super) fn with_volumes(mut self, volumes: Vec<String>) -> Self {
        self.volumes = volumes;
        self
    }

    pub(super) fn with(mut self, services: Vec<String>) -> Self {
        self.services = services;
        self
    }

    pub(super) fn of_place(mut self, place: Option<String>, set_up: Option<String>) -> Self {
        (self.place, self.set_up) = (place, set_up);
        self
    }

    /// Returns the place under which its set-up may be kept.
    pub(super) fn place(&self) -> Option<&str> {
        self.place.as_deref()
    }

    /// Returns the folders that its image declares to be volumes.
    pub(super) fn volumes(&self) -> &[String] {
        &self.volumes
    }

    /// Returns the name of the kept set-up that this container was started from, if any.
    pub fn set_up(&self) -> Option<&str> {
        self.set_up.as_deref()
    }

    /// Returns the digest of the environment's image; empty for a container that was taken over.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the engine's id of the container.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Starts `command` as the container's user in `/workspace` with its streams attached;
    /// `environment` as `NAME=value`.
    ///
    /// If the image lacks the program, the process ends with 126 or 127.
    pub async fn attach(&self, command: &[&str], environment: &[&str]) -> Result<Attached, EnvironmentError> {
        let what = "starting a command in the container";
        let started = self.engine.exec(&self.id, command, environment);
        let process = self.ask_of_the_living(what, started).await?;
        Ok(Attached {
            stdin: process.stdin,
            stdout: process.stdout,
            ending: self.clone().ending(process.ending).boxed(),
        })
    }

    /// Runs `command` with `input` as its stdin, streamed; returns its stdout (at most `max_output`
    /// bytes, more is an error) and ending.
    ///
    /// Gives up when the process took no input for `timeout_seconds`. Output does not count: with
    /// one byte now and then the container could hold the run for as long as it likes.
    pub async fn run(
        &self,
        command: &[&str],
        input: impl AsyncRead + Send + Unpin,
        max_output: usize,
    ) -> Result<(Vec<u8>, ProcessExit), EnvironmentError> {
        let process = self.attach(command, &[]).await?;
        self.talk(&format!("'{}'", command.join(" ")), process, input, max_output)
            .await
    }

    /// Like [`Self::run`], with a process that was attached before; `what` names it in errors.
    pub async fn talk(
        &self,
        what: &str,
        process: Attached,
        input: impl AsyncRead + Send + Unpin,
        max_output: usize,
    ) -> Result<(Vec<u8>, ProcessExit), EnvironmentError> {
        let Attached { stdin, stdout, ending } = process;
        let moved = AtomicU64::new(0);
        let mut feeding = pin!(Self::feed(input, stdin, &moved));
        let mut draining = pin!(self.drain(stdout, max_output));
        let (mut is_fed, mut seen) = (false, 0);
        let output = loop {
            tokio::select! {
                output = &mut draining => break output?,
                fed = &mut feeding, if !is_fed => {
                    fed?;
                    is_fed = true;
                }
                () = sleep(self.silence) => {
                    let now = moved.load(Ordering::Relaxed);
                    if now == seen {
                        self.require_alive().await?;
                        let reason = format!("it did not end within {} s", self.silence.as_secs());
                        return Err(unexpected(&format!("{what} in the container"), &reason));
                    }
                    seen = now;
                }
            }
        };
        Ok((output, ending.await?))
    }

    /// Removes the container and its services, if they still exist, and waits until they are gone.
    pub async fn remove(&self) -> Result<(), EnvironmentError> {
        remove_all(&*self.engine, self.services.iter(), [&self.id].into_iter()).await
    }

    /// Copies `input` to the process; it is no error if the process ends before reading all of it.
    async fn feed(
        mut input: impl AsyncRead + Unpin,
        mut stdin: impl AsyncWrite + Unpin,
        moved: &AtomicU64,
    ) -> Result<(), EnvironmentError> {
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let length = input
                .read(&mut buffer)
                .await
                .map_err(|error| unexpected("reading what is to go into the container", &error.to_string()))?;
            if length == 0 {
                break;
            }
            if stdin.write_all(&buffer[..length]).await.is_err() {
                return Ok(());
            }
            moved.fetch_add(length as u64, Ordering::Relaxed);
        }
        // Fails only if the process has ended.
        let _ = stdin.shutdown().await;
        Ok(())
    }

    async fn drain(&self, mut stdout: impl AsyncRead + Unpin, max_output: usize) -> Result<Vec<u8>, EnvironmentError> {
        let what = "reading a command's output from the container";
        let mut output = Vec::new();
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let length = match stdout.read(&mut buffer).await {
                Ok(0) => return Ok(output),
                Ok(length) => length,
                Err(error) => {
                    self.require_alive().await?;
                    return Err(unexpected(what, &error.to_string()));
                }
            };
            if output.len() + length > max_output {
                return Err(unexpected(what, &format!("it is longer than {max_output} bytes")));
            }
            output.extend_from_slice(&buffer[..length]);
        }
    }

    async fn ending(
        self,
        ending: impl Future<Output = Result<Option<ProcessExit>, Failure>>,
    ) -> Result<ProcessExit, EnvironmentError> {
        let what = "asking how a command in the container ended";
        let ending = match ending.await {
            Err(failure) if failure.is_absent() => {
                // An engine that was restarted knows no command of a container that went on.
                self.require_surviving().await?;
                let reason = format!("it does not know the command any more ({})", failure.reason());
                return Err(self.engine.error(what, Failure::Silent(reason)));
            }
            Err(failure) => return Err(self.failed(what, failure)),
            Ok(ending) => ending,
        };
        let Some(ending) = ending else {
            self.require_alive().await?;
            return Err(unexpected(what, "its output has ended, and it is still running"));
        };
        // In a dying container a process ends with 126 (could not start) or 137 (killed).
        if !(0..126).contains(&ending.exit_code) {
            self.require_surviving().await?;
        }
        Ok(ending)
    }

    /// Fails with [`EnvironmentError::ContainerLost`] if the container does not run, or ends in
    /// this moment: the engine can report the end of a process before the end of the container that
    /// took the process with it.
    pub async fn require_surviving(&self) -> Result<(), EnvironmentError> {
        self.engine.wait(&self.id, DYING_LIMIT).await;
        self.require_alive().await
    }

    /// Fails with [`EnvironmentError::ContainerLost`] if the container does not run.
    pub(super) async fn require_alive(&self) -> Result<(), EnvironmentError> {
        let what = "asking whether the container runs";
        match self.ask(what, self.engine.state(&self.id)).await? {
            ContainerState::Running => Ok(()),
            ContainerState::Ended(reason) => Err(self.lost(&reason)),
        }
    }

    /// Like [`Self::ask`], for calls that need a running container. For one that just died the
    /// engine has many different errors, so its state is inspected instead of matching their texts.
    async fn ask_of_the_living<T>(
        &self,
        what: &str,
        call: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, EnvironmentError> {
        match self.ask(what, call).await {
            Err(error @ EnvironmentError::Unexpected { .. }) => {
                self.require_surviving().await?;
                Err(error)
            }
            answer => answer,
        }
    }

    async fn ask<T>(&self, what: &str, call: impl Future<Output = Result<T, Failure>>) -> Result<T, EnvironmentError> {
        call.await.map_err(|failure| self.failed(what, failure))
    }

    fn failed(&self, what: &str, failure: Failure) -> EnvironmentError {
        if failure.is_absent() || failure.is_conflict() {
            self.lost(&failure.reason())
        } else {
            self.engine.error(what, failure)
        }
    }

    fn lost(&self, reason: &str) -> EnvironmentError {
        EnvironmentError::ContainerLost {
            container: short(&self.id).to_owned(),
            reason: reason.to_owned(),
        }
    }
}

/// Returns an id as people know it: of Docker's the beginning, of a pod the name.
fn short(id: &str) -> &str {
    if id.len() == 64 { &id[..12] } else { id }
}

fn unexpected(what: &str, reason: &str) -> EnvironmentError {
    EnvironmentError::Unexpected {
        what: what.to_owned(),
        reason: reason.to_owned(),
    }
}

/// Removes all containers, each kind concurrently; a failure does not keep the others. Services go
/// first: podman does not remove a container whose network another one uses.
pub(super) async fn remove_all(
    engine: &dyn Processes,
    services: impl Iterator<Item = &String>,
    others: impl Iterator<Item = &String>,
) -> Result<(), EnvironmentError> {
    let mut removed = join_all(services.map(|container| remove(engine, container))).await;
    removed.extend(join_all(others.map(|container| remove(engine, container))).await);
    removed.into_iter().collect()
}

/// Removes the container with this id or name, if it still exists, and waits until it is gone.
pub(super) async fn remove(engine: &dyn Processes, container: &str) -> Result<(), EnvironmentError> {
    let removed = engine.remove(container).await;
    removed.map_err(|failure| engine.error("removing a container", failure))
}
