//! Services and configuration that all runs of a process share.

use std::path::PathBuf;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::agent::record::budget::Budget;
use crate::agent::settings::ChangeRequests;
use crate::agent::settings::Planning;
use crate::agent::settings::Steering;
use crate::approval;
use crate::index;
use crate::journal::Journal;
use crate::llm::config::health::Health;
use crate::llm::config::{Edits, PriceList};
use crate::llm::models::Models;
use crate::repository;
use crate::reviewer::{self, ProgramPaths};
use crate::secret::Redactor;
use crate::store::{Lease, Store};
use crate::tool::McpServerConfig;
use crate::workspace::containers::Containers;

/// Services and configuration that all runs of a process share.
pub struct Services {
    pub store: Store,
    /// The name of the installation in claims on forges; all workers of one store have the same.
    pub installation: Uuid,
    /// The name of this machine's state folder: another one on each machine that shares the store.
    pub machine: String,
    pub journal: Journal,
    pub redactor: Arc<Redactor>,
    pub models: Models,
    pub settings: Settings,
    pub containers: Arc<Containers>,
    /// Held while the server of a model is restarted.
    pub restarting: tokio::sync::Mutex<()>,
}

impl Services {
    /// Gives a run back, to be claimed again not before `until`.
    pub async fn release(&self, lease: &Lease, until: Option<DateTime<Utc>>) {
        if let Err(error) = self.store.release(lease, until).await {
            tracing::error!(task = %lease.task, "the lease could not be given back, it runs out by itself: {error}");
        }
    }
}

/// How plans and results are reviewed.
#[derive(Clone, Default)]
pub struct ReviewSettings {
    pub config: reviewer::config::Config,
    /// The reviewer's prompt, with a place for the document.
    pub prompt: Arc<str>,
    /// The paths that a reviewer program needs to run.
    pub program_paths: ProgramPaths,
}

/// The part of the configuration that runs depend on.
#[derive(Clone)]
pub struct Settings {
    pub state_dir: PathBuf,
    /// Folder for the full text of long tool outputs.
    pub outputs_dir: PathBuf,
    /// Path of this program, which also serves as the guard process of MCP servers.
    pub program: PathBuf,
    pub max_turns: u32,
    pub budget: Budget,
    pub prices: PriceList,
    pub planning: Planning,
    pub steering: Steering,
    pub approval: approval::config::Config,
    pub change_requests: ChangeRequests,
    pub repository: repository::Config,
    /// Largest unfinished work that is kept in the store.
    pub max_work_bytes: u64,
    pub mcp_servers: Vec<McpServerConfig>,
    pub mcp_schema_bytes: usize,
    pub edits: Edits,
    /// How servers of local models are kept ready, if they are.
    pub health: Option<Health>,
    pub review: ReviewSettings,
    pub index: index::Config,
    /// Template of the working prompt, which was checked.
    pub system_prompt: Arc<str>,
}
