//! A connection to the Docker engine: every call has a time-out, and every error says who must act.
//!
//! The API version is negotiated; every endpoint that is used exists since 1.41.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bollard::errors::Error;
use futures_util::{Stream, StreamExt};
use tokio::time::timeout;

use super::EnvironmentError;

const DEFAULT_HOST: &str = "unix:///var/run/docker.sock";

/// API version of the oldest supported engine, 20.10.
const OLDEST_API: (u32, u32) = (1, 41);

/// Time limit of one call. Creating and removing containers can take long on a busy disk.
const CALL_LIMIT: Duration = Duration::from_mins(2);

/// Time limit for connecting and reading the engine's version.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);

#[derive(Clone)]
pub(super) struct Engine {
    pub(super) client: bollard::Docker,
    address: String,
    /// True if the removal of a container failed, so that it may still exist.
    pub(super) has_litter: Arc<AtomicBool>,
}

/// Properties of the engine.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    /// Engine and API version, for people.
    pub(super) description: String,
    pub(super) processors: Option<i64>,
    pub(super) can_limit_disk: bool,
    /// Names of the installed runtimes.
    pub(super) runtimes: Vec<String>,
}

/// How a call failed, before it is known who must act.
#[derive(Debug)]
pub(super) enum Failure {
    /// The engine did not answer.
    Silent(String),
    /// The engine answered with an error.
    Refused { status: u16, message: String },
    /// Something else, e.g. an answer that cannot be read.
    Other(String),
}

impl fmt::Debug for Engine {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Engine({})", self.address)
    }
}

impl Engine {
    pub(super) async fn connect(docker_host: Option<&str>) -> Result<(Self, Facts), EnvironmentError> {
        let address = docker_host
            .map(|host| host.trim().trim_end_matches('/'))
            .filter(|host| !host.is_empty())
            .unwrap_or(DEFAULT_HOST)
            .to_owned();
        let no_docker = |reason: String| EnvironmentError::NoDocker {
            address: address.clone(),
            reason,
        };
        let client = bollard::Docker::connect_with_host(&address)
            .map_err(|error| no_docker(why_not_connected(&error)))?
            // [`Engine::ask`] bounds each call, body included; bollard's time-out covers the head
            // alone.
            .with_timeout(Duration::from_hours(24));
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
            return Err(EnvironmentError::OldDocker { address, found });
        }
        let facts = Facts {
            description: format!("Engine {engine}, API {api}"),
            processors: info.ncpu,
            can_limit_disk: can_limit_disk(
                info.driver.as_deref(),
                info.driver_status.as_deref().unwrap_or_default(),
            ),
            runtimes: info.runtimes.unwrap_or_default().into_keys().collect(),
        };
        let has_litter = Arc::default();
        let engine = Self {
            client,
            address,
            has_litter,
        };
        Ok((engine, facts))
    }

    /// Awaits one call, for at most [`CALL_LIMIT`].
    pub(super) async fn ask<T>(&self, call: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        match timeout(CALL_LIMIT, call).await {
            Ok(answer) => answer.map_err(Failure::from),
            Err(_) => Err(Failure::Silent(format!("no answer within {} s", CALL_LIMIT.as_secs()))),
        }
    }

    /// Awaits the next part of a streamed answer; bounds the silence between parts, not the whole.
    pub(super) async fn next<T>(
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
    pub(super) fn error(&self, what: &str, failure: Failure) -> EnvironmentError {
        match failure {
            Failure::Silent(reason) => EnvironmentError::NoDocker {
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

impl Failure {
    /// True if the object does not exist (404).
    pub(super) fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// True if the state of the object does not allow the call (409), e.g. a container that does
    /// not run.
    pub(super) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }

    /// True if the engine answered with an error.
    pub(super) fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// Returns the engine's text alone.
    pub(super) fn reason(self) -> String {
        match self {
            Self::Silent(reason) | Self::Other(reason) | Self::Refused { message: reason, .. } => reason,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::DockerResponseServerError { status_code, message } => Self::Refused {
                status: status_code,
                message,
            },
            Error::DockerStreamError { error } => Self::Other(error),
            Error::HyperLegacyError { .. }
            | Error::HyperResponseError { .. }
            | Error::IOError { .. }
            | Error::RequestTimeoutError
            | Error::SocketNotFoundError(_) => Self::Silent(why_not_connected(&error)),
            other => Self::Other(other.to_string()),
        }
    }
}

/// Returns the innermost cause; the outer texts only say that a client failed.
fn why_not_connected(error: &Error) -> String {
    if let Error::UnsupportedURISchemeError { .. } = error {
        return "only unix:// and tcp:// addresses are supported".to_owned();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

fn api_number(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// True if the storage driver can limit a container's writable layer. Whether xfs was mounted with
/// `pquota` shows only on creating a container.
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
        let error = |host: &'static str| async move { Engine::connect(Some(host)).await.unwrap_err().to_string() };
        insta::assert_snapshot!(error("unix:///nowhere/docker.sock").await, @"the Docker engine at unix:///nowhere/docker.sock cannot be used: Socket not found: /nowhere/docker.sock; start it, or set DOCKER_HOST");
        insta::assert_snapshot!(error("tcp://127.0.0.1:1").await, @"the Docker engine at tcp://127.0.0.1:1 cannot be used: Connection refused (os error 111); start it, or set DOCKER_HOST");
        insta::assert_snapshot!(error("ssh://somewhere").await, @"the Docker engine at ssh://somewhere cannot be used: only unix:// and tcp:// addresses are supported; start it, or set DOCKER_HOST");
    }
}
