//! What all runs of a process share.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::OnceCell;

use super::budget::Budget;
use super::warm::Pool;
use super::{Planning, Steering};
use crate::environment::docker::Docker;
use crate::environment::{self, EnvironmentError};
use crate::gateway::upstream::Upstream;
use crate::journal::Journal;
use crate::llm::chat::Model;
use crate::repository;
use crate::secret::Redactor;
use crate::store::Store;
use crate::tool::McpServerConfig;

/// What all runs of a process share.
pub struct Workshop {
    pub store: Store,
    pub journal: Journal,
    pub redactor: Arc<Redactor>,
    pub model: Model,
    pub settings: Settings,
    pub warm: Pool,
    docker: OnceCell<Docker>,
}

impl Workshop {
    pub fn new(store: Store, journal: Journal, redactor: Arc<Redactor>, model: Model, settings: Settings) -> Self {
        Self {
            store,
            journal,
            redactor,
            model,
            settings,
            warm: Pool::default(),
            docker: OnceCell::new(),
        }
    }

    /// Tells whether a container could not be removed since the last sweep.
    pub fn has_litter(&self) -> bool {
        self.docker.get().is_some_and(Docker::has_litter)
    }

    /// Returns the connection to the engine, made at the first need; an engine that did not answer
    /// is asked again.
    pub async fn docker(&self) -> Result<&Docker, EnvironmentError> {
        let settings = &self.settings;
        let connect = || {
            Docker::connect(
                &settings.environments,
                settings.docker_host.as_deref(),
                &settings.instance,
            )
        };
        self.docker.get_or_try_init(connect).await
    }
}

/// The part of the configuration that runs depend on.
#[derive(Clone)]
pub struct Settings {
    pub state_dir: PathBuf,
    /// Where the whole of long tool outputs is kept.
    pub outputs_dir: PathBuf,
    /// This program, which also is the guard of MCP servers.
    pub program: PathBuf,
    pub docker_host: Option<String>,
    /// The proxy that this machine is behind, if it is; the way out of containers leads through it.
    pub upstream: Arc<Upstream>,
    /// Tells this installation's containers from those of others on the same engine.
    pub instance: String,
    pub max_turns: u32,
    pub budget: Budget,
    pub planning: Planning,
    pub steering: Steering,
    pub environments: environment::Config,
    pub repository: repository::Config,
    pub mcp_servers: Vec<McpServerConfig>,
    pub mcp_schema_bytes: usize,
}
