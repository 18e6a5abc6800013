//! Repository, container and tools of a run, as far as they are open in this process.

use std::sync::Arc;

use tokio::task::JoinHandle;

use crate::agent::dialogue::ReplyForm;
use crate::agent::dialogue::control_tools::ControlTools;
use crate::agent::record::interruption::Interruption;
use crate::conversation::decode::DONE;
use crate::conversation::{ToolSpec, tool_name};
use crate::gateway::ledger::Ledger;
use crate::repository::mirror::Mirror;
use crate::tool::toolbox::Toolbox;
use crate::workspace::prefetch::Prefetch;
use crate::workspace::project::Project;

/// Repository, container and tools of a run, as far as they are open in this process.
pub(crate) struct RunWorkspace {
    /// The repository, after this process fetched it.
    pub(crate) mirror: Option<Mirror>,
    /// Container and tools, once they are open.
    pub(crate) open: Option<OpenWorkspace>,
    /// The environment that is opened while the model plans.
    pub(crate) early: Option<Prefetch>,
    /// Connections that the container was refused.
    pub(crate) ledger: Arc<Ledger>,
}

impl RunWorkspace {
    /// Creates a workspace with nothing open.
    pub(crate) fn new(ledger: Ledger) -> Self {
        Self {
            mirror: None,
            open: None,
            early: None,
            ledger: Arc::new(ledger),
        }
    }

    /// Returns the container and tools.
    ///
    /// # Errors
    /// If the stage did not open them.
    pub(crate) fn opened(&mut self) -> Result<&mut OpenWorkspace, Interruption> {
        self.open
            .as_mut()
            .ok_or_else(|| Interruption::failed("the workspace is not open"))
    }
}

/// Container and tools, open while this process works on the run.
pub(crate) struct OpenWorkspace {
    pub project: Arc<Project>,
    pub toolbox: Arc<Toolbox>,
    pub control_tools: Arc<ControlTools>,
    pub specs: Arc<[ToolSpec]>,
    pub keeping: SnapshotTimer,
}

impl OpenWorkspace {
    /// Has the toolbox show a model that replies in this form the tools that it is told of, where
    /// it calls one that does not exist.
    pub(crate) fn offer_tools(&self, form: ReplyForm) {
        let names = self.specs.iter().map(|spec| tool_name::short(&spec.name));
        let done = (form == ReplyForm::Native).then_some(DONE);
        self.toolbox.offer(names.chain(done).map(str::to_owned).collect());
    }

    /// Stops the tool servers and removes the container; returns its id.
    pub(crate) async fn clear(mut self) -> String {
        self.keeping.finish().await;
        self.toolbox.close().await;
        self.project.remove().await;
        self.project.container_id().to_owned()
    }

    /// Stops the tool servers and leaves the container running.
    pub(crate) async fn abandon(mut self) {
        self.keeping.finish().await;
        self.toolbox.close().await;
    }
}

/// Turns since the last snapshot, and the snapshot in progress.
#[derive(Default)]
pub(crate) struct SnapshotTimer {
    pub(crate) turns: u32,
    pub(crate) running: Option<JoinHandle<()>>,
}

impl SnapshotTimer {
    /// Waits for a running snapshot.
    pub(crate) async fn finish(&mut self) {
        if let Some(running) = self.running.take() {
            // The task logs its own errors; after a panic the previous snapshot remains.
            let _ = running.await;
        }
    }
}
