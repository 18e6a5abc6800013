//! An environment that is opened while the model still plans, because the project's files tell
//! which one the plan will choose.
//!
//! Nothing depends on it: where the plan chose another environment or another branch it is thrown
//! away, and where it could not be opened it is opened again when it is needed, so that what went
//! wrong is said in one place.

use tokio::task::JoinHandle;

use crate::workspace::base::Base;
use crate::workspace::error::WorkspaceError;
use crate::workspace::opening::{OpenedWorkspace, Opening};

/// What was begun early. It must be taken or discarded: dropping it leaves a container for the next
/// sweep.
pub(crate) struct Prefetch {
    name: String,
    base: Base,
    opening: JoinHandle<Result<Option<OpenedWorkspace>, WorkspaceError>>,
}

impl Prefetch {
    /// Begins to open the environment if its images are here.
    pub(crate) fn begin(opening: Opening) -> Self {
        Self {
            name: opening.name.clone(),
            base: opening.base.clone(),
            opening: tokio::spawn(async move {
                if !opening.is_at_hand().await? {
                    return Ok(None);
                }
                Box::pin(opening.open()).await.map(Some)
            }),
        }
    }

    /// Waits until it is open and returns it, if it is what `opening` wants.
    pub(crate) async fn take_for(self, opening: &Opening) -> Option<OpenedWorkspace> {
        let is_wanted = self.name == opening.name && self.base == opening.base;
        let opened = self.opened().await?;
        if is_wanted && opened.serves(&opening.set_up) {
            return Some(opened);
        }
        opened.discard().await;
        None
    }

    /// Waits until it is open, and closes it again.
    pub(crate) async fn discard(self) {
        if let Some(opened) = self.opened().await {
            opened.discard().await;
        }
    }

    async fn opened(self) -> Option<OpenedWorkspace> {
        let reason = match self.opening.await {
            Ok(Ok(opened)) => return opened,
            Ok(Err(interruption)) => format!("{interruption:?}"),
            Err(error) => error.to_string(),
        };
        tracing::debug!("an environment was not opened early: {reason}");
        None
    }
}
