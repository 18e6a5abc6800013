//! Opens an environment while the model still plans, because the project's files suggest which one
//! the plan will choose.
//!
//! Nothing depends on it: if the plan chooses another environment or branch, it is discarded. If it
//! cannot be opened, the run opens it again later, which reports the error in one place.

use tokio::task::JoinHandle;

use crate::workspace::base::Base;
use crate::workspace::error::WorkspaceError;
use crate::workspace::opening::{OpenedProject, Opening};

/// An environment being opened. It must be taken or discarded: if dropped, its container stays
/// until the next sweep.
pub(crate) struct Prefetch {
    name: String,
    base: Base,
    opening: JoinHandle<Result<Option<OpenedProject>, WorkspaceError>>,
}

impl Prefetch {
    /// Starts to open the environment if its images are local.
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

    /// Waits for the opening, and returns the workspace if it is what `opening` wants.
    pub(crate) async fn take_for(self, opening: &Opening) -> Option<OpenedProject> {
        let is_wanted = self.name == opening.name && self.base == opening.base;
        let opened = self.opened().await?;
        if is_wanted && opened.serves(&opening.set_up) {
            return Some(opened);
        }
        opened.discard().await;
        None
    }

    /// Waits for the opening, and closes the workspace again.
    pub(crate) async fn discard(self) {
        if let Some(opened) = self.opened().await {
            opened.discard().await;
        }
    }

    async fn opened(self) -> Option<OpenedProject> {
        let reason = match self.opening.await {
            Ok(Ok(opened)) => return opened,
            Ok(Err(interruption)) => format!("{interruption:?}"),
            Err(error) => error.to_string(),
        };
        tracing::debug!("an environment was not opened early: {reason}");
        None
    }
}
