//! The engine.

use std::collections::HashSet;
use std::path::Path;

use super::container::Container;
use super::{Config, Environment, EnvironmentError};
use crate::task::id::{RunId, TaskId};

/// A connection to the Docker engine. Cheap to clone.
#[derive(Clone)]
pub struct Docker {}

impl Docker {
    /// Connects to `DOCKER_HOST` (unix socket or tcp) or the default socket, and negotiates the version (API 1.41 and later).
    pub async fn connect(_config: &Config, _docker_host: Option<&str>) -> Result<Self, EnvironmentError> {
        todo!()
    }

    /// Returns `Engine 20.10.24, API 1.41`, for people.
    pub fn describe(&self) -> &str {
        todo!()
    }

    /// Sees to it that the image is there: present, else pulled, else built if the environment says how.
    /// `progress` gets short lines for people.
    pub async fn ensure_image(
        &self,
        _environment: &Environment,
        _progress: &(dyn Fn(String) + Send + Sync),
    ) -> Result<(), EnvironmentError> {
        todo!()
    }

    /// Tells whether the image is present.
    pub async fn has_image(&self, _image: &str) -> Result<bool, EnvironmentError> {
        todo!()
    }

    /// Creates a container with all limits, copies `executor` in as `/usr/local/bin/coding-agent-executor`, and starts it. `/workspace/project`
    /// exists and belongs to its user. Removes an older container of the same run first.
    pub async fn start(
        &self,
        _task: &TaskId,
        _run: RunId,
        _image: &str,
        _executor: &Path,
    ) -> Result<Container, EnvironmentError> {
        todo!()
    }

    /// Returns the running container of `run`, if there is one: an earlier process left it.
    pub async fn find(&self, _run: RunId) -> Result<Option<Container>, EnvironmentError> {
        todo!()
    }

    /// Removes all containers of this program's whose run is not in `keep`, and those older than `cleanup.stale_hours`; returns how many.
    pub async fn sweep(&self, _keep: &HashSet<RunId>) -> Result<usize, EnvironmentError> {
        todo!()
    }
}
