//! The client of the Docker API, which podman serves as well. It is the only place that knows
//! bollard: what it takes and returns are plain types.
//!
//! Every call has a time-out. The API version is negotiated; every endpoint that is used exists
//! since 1.41.

mod failure; // how a call failed
mod access; // the engine's address, and Docker's own folder
mod credentials; // credentials for private images
mod stream; // stdout and stderr of a process
mod progress; // progress lines of pulls and builds
mod create; // describes a container to the engine
mod containers; // containers and their files
mod exec; // starts processes in a container
mod images; // finds, makes and removes images
mod pull; // pulls and builds images
mod processes; // the processes of containers, for the rest of the program

use std::fmt;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bollard::errors::Error;
use bollard::models::SystemInfo;
use futures_util::{Stream, StreamExt};
use tokio::time::timeout;

use super::error::EnvironmentError;
use super::processes::Failure;
pub use access::EngineAccess;
#[cfg(test)]
pub(crate) use create::create_body;
pub(crate) use create::{ContainerNetwork, ContainerSpec, Limit, Limits};
use failure::why_not_connected;
pub(crate) use images::ImageSummary;

/// API version of the oldest supported engine, 20.10.
const OLDEST_API: (u32, u32) = (1, 41);

/// Time limit of one call. Creating and removing containers can take long on a busy disk.
const CALL_LIMIT: Duration = Duration::from_mins(2);

/// Time limit for connecting and reading the engine's version.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);

/// A connection to an engine. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Client {
    docker: bollard::Docker,
    address: String,
    /// Whether the removal of a container failed, so that it may still exist.
    has_leftovers: Arc<AtomicBool>,
    /// Docker's own folder, with the credentials of registries.
    config_folder: Option<PathBuf>,
}

/// Properties of the engine.
#[derive(Debug, Clone)]
pub(crate) struct EngineInfo {
    /// Engine and API version, for people.
    pub(crate) description: String,
    pub(crate) processors: Option<i64>,
    /// Limits that it cannot keep.
    pub(crate) unlimited: Vec<Limit>,
    /// The architecture of its machine, such as `x86_64`.
    pub(crate) architecture: String,
    /// Names of the installed runtimes.
    pub(crate) runtimes: Vec<String>,
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Client({})", self.address)
    }
}

impl Client {
    pub(crate) async fn connect(access: &EngineAccess) -> Result<(Self, EngineInfo), EnvironmentError> {
        let address = access.address();
        if address.starts_with('/') {
            return Err(EnvironmentError::EngineByPath { path: address });
        }
        let no_docker = |reason: String| EnvironmentError::EngineUnavailable {
            address: address.clone(),
            reason,
        };
        let client = bollard::Docker::connect_with_host(&address)
            .map_err(|error| no_docker(why_not_connected(&error)))?
            // [`Client::ask`] bounds each call, body included; bollard's time-out covers the head
            // alone.
            .with_timeout(Duration::from_hours(24))
            .with_request_modifier(|mut request| {
                credentials::encode_for_addresses(request.headers_mut());
                request
            });
        let identify = async {
            let client = client.negotiate_version().await?;
            let (version, info) = (client.version().await?, client.info().await?);
            Ok((client, version, info))
        };
        let (client, version, info) = timeout(CONNECT_LIMIT, identify)
            .await
            .map_err(|_| no_docker(format!("no answer within {} s", CONNECT_LIMIT.as_secs())))?
            .map_err(|error| no_docker(why_not_connected(&error)))?;
        let (engine, api) = (
            version.version.unwrap_or_default(),
            version.api_version.unwrap_or_default(),
        );
        if api_number(&api).is_none_or(|api| api < OLDEST_API) {
            let found = format!("Engine {engine}, API {api}");
            return Err(EnvironmentError::EngineTooOld { address, found });
        }
        let info = EngineInfo {
            description: format!("Engine {engine}, API {api}"),
            processors: info.ncpu,
            unlimited: unlimited(&info),
            architecture: info.architecture.unwrap_or_default(),
            runtimes: info.runtimes.unwrap_or_default().into_keys().collect(),
        };
        let client = Self {
            docker: client,
            address,
            has_leftovers: Arc::default(),
            config_folder: access.config_folder.clone(),
        };
        Ok((client, info))
    }

    /// Returns true if the removal of a container failed since [`Self::forget_leftovers`].
    pub(crate) fn has_leftovers(&self) -> bool {
        self.has_leftovers.load(Ordering::Relaxed)
    }

    pub(crate) fn forget_leftovers(&self) {
        self.has_leftovers.store(false, Ordering::Relaxed);
    }

    /// Awaits one call, for at most [`CALL_LIMIT`].
    async fn ask<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        // Boxed, because the calls of the client are futures of many kilobytes.
        match timeout(CALL_LIMIT, Box::pin(call)).await {
            Ok(answer) => answer.map_err(Failure::from),
            Err(_) => Err(Failure::Silent(format!("no answer within {} s", CALL_LIMIT.as_secs()))),
        }
    }

    /// Awaits the next part of a streamed answer; bounds the silence between parts, not the whole.
    async fn next<T>(
        &self,
        parts: &mut (impl Stream<Item = Result<T, Error>> + Unpin),
        silence: Duration,
    ) -> Result<Option<T>, Failure> {
        match timeout(silence, parts.next()).await {
            Ok(part) => part.transpose().map_err(Failure::from),
            Err(_) => Err(Failure::Silent(format!(
                "nothing was heard for {} s",
                silence.as_secs()
            ))),
        }
    }

    /// Converts a failure of `what` into an error that says who must act.
    pub(crate) fn error(&self, what: &str, failure: Failure) -> EnvironmentError {
        match failure {
            Failure::Silent(reason) => EnvironmentError::EngineUnavailable {
                address: self.address.clone(),
                reason: format!("{what}: {reason}"),
            },
            Failure::Refused { message, .. } => EnvironmentError::Unexpected {
                what: what.to_owned(),
                reason: message,
            },
            Failure::Other(reason) => EnvironmentError::Unexpected {
                what: what.to_owned(),
                reason,
            },
        }
    }
}

fn api_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Returns the limits that the engine says it cannot keep, for lack of a controller for instance.
fn unlimited(info: &SystemInfo) -> Vec<Limit> {
    let is_kept = |limit: &Limit| match limit {
        Limit::Processors => info.cpu_cfs_quota != Some(false) && info.cpu_cfs_period != Some(false),
        Limit::Memory => info.memory_limit != Some(false),
        Limit::Processes => info.pids_limit != Some(false),
        Limit::Disk => can_limit_disk(
            info.driver.as_deref(),
            info.driver_status.as_deref().unwrap_or_default(),
        ),
    };
    Limit::ALL.into_iter().filter(|limit| !is_kept(limit)).collect()
}

/// Returns true if the storage driver can limit a container's writable layer. Whether xfs was
/// mounted with `pquota` shows only on creating a container.
fn can_limit_disk(driver: Option<&str>, status: &[Vec<String>]) -> bool {
    match driver {
        Some("overlay2") => status
            .iter()
            .any(|pair| pair.iter().map(String::as_str).eq(["Backing Filesystem", "xfs"])),
        Some("btrfs" | "zfs" | "devicemapper") => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_older_than_20_10_is_told_by_its_number() {
        assert!(api_number("1.40").is_some_and(|api| api < OLDEST_API));
        assert!(api_number("1.41").is_some_and(|api| api >= OLDEST_API));
        assert!(api_number("1.100").is_some_and(|api| api >= OLDEST_API));
        assert_eq!(api_number("latest"), None);
    }

    #[test]
    fn only_some_storage_can_be_limited() {
        let on = |filesystem: &str| vec![vec!["Backing Filesystem".to_owned(), filesystem.to_owned()]];
        assert!(can_limit_disk(Some("overlay2"), &on("xfs")));
        assert!(!can_limit_disk(Some("overlay2"), &on("extfs")));
        assert!(can_limit_disk(Some("btrfs"), &[]));
        assert!(!can_limit_disk(None, &[]));
    }

    #[tokio::test]
    async fn an_engine_that_is_not_there_is_named_with_the_mend() {
        let error = |host: &'static str| async move {
            let access = EngineAccess {
                host: Some(host.to_owned()),
                ..EngineAccess::default()
            };
            Client::connect(&access).await.unwrap_err().to_string()
        };
        insta::assert_snapshot!(error("unix:///nowhere/docker.sock").await, @"the Docker engine at unix:///nowhere/docker.sock cannot be used: Socket not found: /nowhere/docker.sock; start it, or set DOCKER_HOST");
        insta::assert_snapshot!(error("tcp://127.0.0.1:1").await, @"the Docker engine at tcp://127.0.0.1:1 cannot be used: Connection refused (os error 111); start it, or set DOCKER_HOST");
        insta::assert_snapshot!(error("/var/run/docker.sock").await, @"the Docker engine's address is the path /var/run/docker.sock; write unix:///var/run/docker.sock in DOCKER_HOST");
        insta::assert_snapshot!(error("ssh://somewhere").await, @"the Docker engine at ssh://somewhere cannot be used: only unix:// and tcp:// addresses are supported; start it, or set DOCKER_HOST");
    }
}
