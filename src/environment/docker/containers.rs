//! Containers: created, started, listed, inspected and removed, and their files before they run.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bollard::body_try_stream;
use bollard::errors::Error;
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, DownloadFromContainerOptionsBuilder, InspectContainerOptionsBuilder,
    ListContainersOptionsBuilder, LogsOptionsBuilder, RemoveContainerOptionsBuilder, RenameContainerOptionsBuilder,
    UploadToContainerOptionsBuilder, WaitContainerOptionsBuilder,
};
use futures_util::StreamExt;
use tokio::io::AsyncRead;
use tokio::time::{Instant, sleep};
use tokio_util::io::ReaderStream;

use super::Client;
use super::create::{ContainerSpec, create_body};
use crate::environment::processes::{ContainerState, Failure};

/// Time limit for the engine to remove a container.
const REMOVAL_LIMIT: Duration = Duration::from_mins(1);

/// Time limit between two parts of a file that is read from a container.
const DOWNLOAD_SILENCE: Duration = Duration::from_mins(1);

/// The time in which podman puts away what an ended process leaves; a program of its own does it,
/// which a busy machine starts late.
const LONGEST_STOP: Duration = Duration::from_secs(30);

/// The time between two questions meanwhile.
const STOP_PAUSE: Duration = Duration::from_millis(50);

/// Size of one read of an archive that is copied into a container, in bytes.
const UPLOAD_PIECE: usize = 256 * 1024;

/// A listed container.
pub(crate) struct ContainerSummary {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) labels: HashMap<String, String>,
    /// Seconds since 1970.
    pub(crate) created: i64,
}

/// How the engine answered a question about containers.
enum Answered<T> {
    With(T),
    /// For all of [`LONGEST_STOP`] the process of one of them had ended without the container
    /// having done so, and podman's word for that is not one that the client reads.
    StillStopping(Failure),
}

impl<T> Answered<T> {
    fn or_failure(self) -> Result<T, Failure> {
        match self {
            Self::With(answer) => Ok(answer),
            Self::StillStopping(failure) => Err(failure),
        }
    }
}

impl Client {
    /// Creates a container and returns its id.
    pub(crate) async fn create(&self, name: &str, spec: &ContainerSpec) -> Result<String, Failure> {
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        let created = self.docker.create_container(Some(options), create_body(spec));
        Ok(self.ask(created).await?.id)
    }

    pub(crate) async fn start(&self, container: &str) -> Result<(), Failure> {
        self.ask(self.docker.start_container(container, None)).await
    }

    pub(crate) async fn rename(&self, container: &str, name: &str) -> Result<(), Failure> {
        let options = RenameContainerOptionsBuilder::default().name(name).build();
        self.ask(self.docker.rename_container(container, options)).await
    }

    /// Removes the container with this id or name, if it still exists, and waits until it is gone.
    pub(crate) async fn remove(&self, container: &str) -> Result<(), Failure> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        let removed = match self.ask(self.docker.remove_container(container, Some(options))).await {
            Err(failure) if failure.is_absent() => Ok(()),
            // Another removal of it is in progress.
            Err(failure) if failure.is_conflict() => self.until_removed(container).await,
            removed => removed,
        };
        if removed.is_err() {
            self.has_leftovers.store(true, Ordering::Relaxed);
        }
        removed
    }

    async fn until_removed(&self, container: &str) -> Result<(), Failure> {
        let options = WaitContainerOptionsBuilder::default().condition("removed").build();
        let mut waiting = pin!(self.docker.wait_container(container, Some(options)));
        match self.next(&mut waiting, REMOVAL_LIMIT).await {
            Ok(_) | Err(Failure::Other(_)) => Ok(()),
            Err(failure) if failure.is_absent() => Ok(()),
            Err(failure) => Err(failure),
        }
    }

    /// Waits until the container has ended, for at most `limit`.
    pub(crate) async fn wait(&self, container: &str, limit: Duration) {
        let options = WaitContainerOptionsBuilder::default().condition("not-running").build();
        let mut waiting = pin!(self.docker.wait_container(container, Some(options)));
        // The caller looks at the state: of a container that is gone this is an error.
        let _ = self.next(&mut waiting, limit).await;
    }

    pub(crate) async fn state(&self, container: &str) -> Result<ContainerState, Failure> {
        let inspected = self
            .ask_past_stopping(|| self.docker.inspect_container(container, None))
            .await?;
        let state = match inspected {
            Answered::With(inspected) => inspected.state.unwrap_or_default(),
            Answered::StillStopping(_) => return Ok(ContainerState::Ended("its process has ended".to_owned())),
        };
        Ok(match (state.running, state.oom_killed) {
            (Some(true), _) => ContainerState::Running,
            (_, Some(true)) => ContainerState::Ended("it ran out of memory".to_owned()),
            _ => ContainerState::Ended(format!("it has ended with exit code {}", state.exit_code.unwrap_or(-1))),
        })
    }

    /// Asks again, for at most [`LONGEST_STOP`], while podman says that a container is `stopped`:
    /// its process has ended, and what it leaves is not put away yet. Docker knows no such state,
    /// and its client does not read it.
    async fn ask_past_stopping<T, F>(&self, call: impl Fn() -> F) -> Result<Answered<T>, Failure>
    where
        F: Future<Output = Result<T, Error>>,
    {
        let deadline = Instant::now() + LONGEST_STOP;
        loop {
            // The calls of the client are futures of many kilobytes.
            let call = Box::pin(call());
            let asked = self.ask(async { Ok(call.await) }).await?;
            match asked {
                Err(error @ Error::JsonDataError { .. }) if error.to_string().contains("unknown variant `stopped`") => {
                    if Instant::now() >= deadline {
                        return Ok(Answered::StillStopping(error.into()));
                    }
                    sleep(STOP_PAUSE).await;
                }
                answered => return answered.map(Answered::With).map_err(Failure::from),
            }
        }
    }

    /// Returns how many bytes a container adds to its image, if the engine says so.
    pub(crate) async fn size(&self, container: &str) -> Result<Option<u64>, Failure> {
        let options = InspectContainerOptionsBuilder::default().size(true).build();
        let inspected = self
            .ask_past_stopping(|| self.docker.inspect_container(container, Some(options.clone())))
            .await?
            .or_failure()?;
        Ok(inspected.size_rw.and_then(|size| u64::try_from(size).ok()))
    }

    /// Lists the containers that have `label` (`name=value`), running or not.
    pub(crate) async fn list(&self, label: String, only_running: bool) -> Result<Vec<ContainerSummary>, Failure> {
        let mut filters = HashMap::from([("label", vec![label])]);
        if only_running {
            filters.insert("status", vec!["running".to_owned()]);
        }
        let options = ListContainersOptionsBuilder::default()
            .all(true)
            .filters(&filters)
            .build();
        let listed = self
            .ask_past_stopping(|| self.docker.list_containers(Some(options.clone())))
            .await?
            .or_failure()?;
        let summaries = listed.into_iter().filter_map(|summary| {
            let name = summary.names.unwrap_or_default().pop().unwrap_or_default();
            Some(ContainerSummary {
                id: summary.id?,
                name: name.trim_start_matches('/').to_owned(),
                labels: summary.labels.unwrap_or_default(),
                created: summary.created.unwrap_or_default(),
            })
        });
        Ok(summaries.collect())
    }

    /// Unpacks a tar archive at the root of a container.
    pub(crate) async fn upload(
        &self,
        container: &str,
        archive: impl AsyncRead + Send + Unpin + 'static,
    ) -> Result<(), Failure> {
        let options = UploadToContainerOptionsBuilder::default().path("/").build();
        let archive = body_try_stream(ReaderStream::with_capacity(archive, UPLOAD_PIECE));
        self.ask(self.docker.upload_to_container(container, Some(options), archive))
            .await
    }

    /// Returns a file of a container in a tar archive, of at most `limit` bytes; empty if it is
    /// absent.
    pub(crate) async fn download(&self, container: &str, path: &str, limit: usize) -> Result<Vec<u8>, Failure> {
        let options = DownloadFromContainerOptionsBuilder::default().path(path).build();
        let mut parts = Box::pin(self.docker.download_from_container(container, Some(options)));
        let mut archive = Vec::new();
        loop {
            match self.next(&mut parts, DOWNLOAD_SILENCE).await {
                Ok(Some(part)) if archive.len() + part.len() <= limit => archive.extend_from_slice(&part),
                Ok(_) => return Ok(archive),
                Err(failure) if failure.is_absent() => return Ok(archive),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// Appends the last lines of a container's log to `text`, up to about `limit` bytes.
    pub(crate) async fn read_log(&self, container: &str, limit: usize, text: &mut Vec<u8>) {
        let options = LogsOptionsBuilder::default()
            .stdout(true)
            .stderr(true)
            .tail("20")
            .build();
        let mut parts = Box::pin(self.docker.logs(container, Some(options)));
        while let Some(Ok(part)) = parts.next().await {
            text.extend_from_slice(&part.into_bytes());
            if text.len() > limit {
                break;
            }
        }
    }
}
