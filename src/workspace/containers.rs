//! The engine of this machine and what every container on it is started with.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::OnceCell;

use crate::environment::docker::Docker;
use crate::environment::{Config, EnvironmentError};
use crate::gateway::upstream::Upstream;
use crate::workspace::pool::Pool;

/// The engine of this machine and what every container on it is started with; one per process.
pub struct Containers {
    pub config: Config,
    /// The proxy that this machine is behind, if it is; the way out of containers leads through it.
    pub upstream: Arc<Upstream>,
    /// Containers that wait for runs.
    pub pool: Pool,
    docker_host: Option<String>,
    instance: String,
    docker: OnceCell<Docker>,
}

impl Containers {
    /// Keeps what is needed to connect. `instance` tells this installation's containers from those
    /// of others on the same engine. Does not touch the engine.
    pub fn new(config: Config, docker_host: Option<String>, instance: String, upstream: Arc<Upstream>) -> Self {
        Self {
            config,
            upstream,
            pool: Pool::default(),
            docker_host,
            instance,
            docker: OnceCell::new(),
        }
    }

    /// Tells whether a container could not be removed since the last sweep.
    pub fn has_litter(&self) -> bool {
        self.docker.get().is_some_and(Docker::has_litter)
    }

    /// Returns the connection to the engine, made at the first need. An engine that did not answer
    /// is asked again at the next call.
    pub async fn docker(&self) -> Result<&Docker, EnvironmentError> {
        let connect = || Docker::connect(&self.config, self.docker_host.as_deref(), &self.instance);
        self.docker.get_or_try_init(connect).await
    }
}

/// Returns the whole milliseconds since `begun`.
pub fn milliseconds_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}
