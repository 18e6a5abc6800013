//! Repository, container and tools of a run, as far as they are open in this process.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::agent::dialogue::control_tools::ControlTools;
use crate::conversation::ToolSpec;
use crate::gateway::ledger::Ledger;
use crate::repository::mirror::Mirror;
use crate::tool::toolbox::Toolbox;
use crate::workspace::prefetch::Prefetch;
use crate::workspace::project::Workspace;

/// Repository, container and tools of a run, as far as they are open in this process.
pub(crate) struct RunWorkspace {
    /// The repository, once it was fetched by this process.
    pub(crate) mirror: Option<Mirror>,
    /// Container and tools, once they are open.
    pub(crate) open: Option<OpenWorkspace>,
    /// The environment that is opened while the model plans.
    pub(crate) early: Option<Prefetch>,
    /// What the container asked for and did not get.
    pub(crate) ledger: Arc<Ledger>,
}

impl RunWorkspace {
    /// Returns one in which nothing is open.
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self {
            mirror: None,
            open: None,
            early: None,
            ledger: Arc::new(ledger),
        }
    }
}

/// Open while a run is worked on in this process.
pub(crate) struct OpenWorkspace {
    pub workspace: Arc<Workspace>,
    pub toolbox: Arc<Toolbox>,
    pub control_tools: Arc<ControlTools>,
    pub specs: Arc<[ToolSpec]>,
    pub keeping: SnapshotTimer,
}

impl OpenWorkspace {
    /// Ends the tool servers and removes the container; returns which it was.
    pub(crate) async fn clear(mut self) -> String {
        self.keeping.finish().await;
        self.toolbox.close().await;
        self.workspace.remove().await;
        self.workspace.container().to_owned()
    }

    /// Ends the tool servers and leaves the container as it is.
    pub(crate) async fn abandon(mut self) {
        self.keeping.finish().await;
        self.toolbox.close().await;
    }
}

/// What became of the work since it was last kept.
#[derive(Default)]
pub(crate) struct SnapshotTimer {
    pub(crate) turns: u32,
    pub(crate) running: Option<JoinHandle<()>>,
}

impl SnapshotTimer {
    /// Waits for the snapshot that is being made, if one is.
    pub(crate) async fn finish(&mut self) {
        if let Some(running) = self.running.take() {
            // It says itself what went wrong; a panic leaves the snapshot before.
            let _ = running.await;
        }
    }
}
