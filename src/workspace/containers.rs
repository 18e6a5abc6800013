//! The engine of this machine, and the configuration of all containers on it.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::OnceCell;

use crate::environment::{Config, Engine, EngineAccess, EnvironmentError};
use crate::gateway::upstream::Upstream;
use crate::workspace::pool::Pool;

/// The engine of this machine, and the configuration of all containers on it; one per process.
pub struct Containers {
    pub config: Config,
    /// The proxy for outgoing connections of this machine, if any; those of containers use it too.
    pub upstream: Arc<Upstream>,
    /// Containers that were started in advance.
    pub pool: Pool,
    access: EngineAccess,
    instance: String,
    engine: OnceCell<Engine>,
}

impl Containers {
    /// Stores the parameters of the connection, without using the engine. `instance` separates this
    /// installation's containers from others on the same engine.
    pub fn new(config: Config, access: EngineAccess, instance: String, upstream: Arc<Upstream>) -> Self {
        Self {
            config,
            upstream,
            pool: Pool::default(),
            access,
            instance,
            engine: OnceCell::new(),
        }
    }

    /// Returns true if the removal of a container failed since the last sweep.
    pub fn has_leftovers(&self) -> bool {
        self.engine.get().is_some_and(Engine::has_leftovers)
    }

    /// Returns the connection to the engine, made when first needed. If the engine did not answer,
    /// the next call tries again.
    pub async fn engine(&self) -> Result<&Engine, EnvironmentError> {
        let connect = || Engine::connect(&self.config, &self.access, &self.instance);
        self.engine.get_or_try_init(connect).await
    }
}

/// Returns the milliseconds since `begun`.
pub fn milliseconds_since(begun: Instant) -> u64 {
    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX)
}
