//! Errors of git, by who must act.

/// An error of git. The variant says who must act.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The operator: the credentials or their rights.
    #[error("{what}: access refused: {reason}")]
    Refused { what: String, reason: String },
    /// The caller: the forge takes no push that leaves out commits of the branch, and may take one
    /// that adds to them.
    #[error("{what}: access refused: {reason}")]
    ForceRefused { what: String, reason: String },
    /// The host did not answer; a retry may succeed.
    #[error("{what}: {reason}")]
    Unavailable { what: String, reason: String },
    /// The branch on the forge or the local folder changed meanwhile; nothing was overwritten.
    #[error("{what}: it has changed meanwhile: {reason}")]
    Moved { what: String, reason: String },
    /// The container's commits break a rule; nothing of them was kept.
    #[error("the commits from the container were refused: {0}")]
    Unacceptable(String),
    /// The container did not hand its commits out in time: by its own fault, or because its engine
    /// is slow.
    #[error("the commits from the container were refused: {0}")]
    TooSlow(String),
    /// Any other error.
    #[error("{what}: {reason}")]
    Unexpected { what: String, reason: String },
}
