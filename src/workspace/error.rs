//! Why a workspace could not be opened or used.

use crate::environment::EnvironmentError;
use crate::repository::RepositoryError;
use crate::tool::ToolError;

/// Why a workspace could not be opened or used. The cause is kept, since it decides what becomes of
/// the run.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    #[error(transparent)]
    Environment(#[from] EnvironmentError),
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// It was given up because the program is asked to stop.
    #[error("the program is asked to stop")]
    Interrupted,
    /// The result reaches what the project's rules leave out.
    #[error("{0}")]
    OutsideRules(String),
    /// Another try would fail as well.
    #[error("{0}")]
    Failed(String),
}
