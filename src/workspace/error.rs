//! Errors of opening and using a workspace.

use crate::environment::EnvironmentError;
use crate::repository::RepositoryError;
use crate::tool::ToolError;

/// Error of opening or using a workspace. The cause is kept, since it determines how the run ends.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// Aborted because the program was asked to stop.
    #[error("the program is asked to stop")]
    Cancelled,
    /// The result changes files that the project's rules exclude.
    #[error("{0}")]
    OutsideRules(String),
    /// A retry would fail as well.
    #[error("{0}")]
    Failed(String),
}
