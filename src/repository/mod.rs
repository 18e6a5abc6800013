//! The repository on the worker: a bare mirror and nothing else. No checkout, no hooks, no filters, no submodules.
//!
//! Every git process runs with a cleared environment and hardened configuration; credentials are in the environment
//! of the one process that needs them.

pub mod git;
pub mod incoming;
pub mod mirror;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits on what comes out of a container, and who signs the commits.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Author and committer of delivered commits.
    pub author_name: String,
    pub author_email: String,
    /// Longest time one git command may take.
    pub timeout_seconds: u64,
    /// Most bytes of new objects that are taken back from a container.
    pub max_incoming_bytes: u64,
    /// Largest single file in a delivered commit.
    pub max_file_bytes: u64,
}

/// A commit's full object id, hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CommitId(String);

/// Why git did not do it. The variant says who must act.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The operator: the credentials or their rights.
    #[error("{what}: access refused: {reason}")]
    Refused { what: String, reason: String },
    /// Time: the host did not answer.
    #[error("{what}: {reason}")]
    Unavailable { what: String, reason: String },
    /// The branch moved on the forge while we worked; nothing was overwritten.
    #[error("{what}: the branch has moved on: {reason}")]
    Moved { what: String, reason: String },
    /// What came out of the container is not acceptable; nothing of it was kept.
    #[error("the commits from the container were refused: {0}")]
    Unacceptable(String),
    /// Anything else git said.
    #[error("{what}: {reason}")]
    Unexpected { what: String, reason: String },
}

impl Default for Config {
    fn default() -> Self {
        Self {
            author_name: "coding-agent".to_owned(),
            author_email: "coding-agent@localhost".to_owned(),
            timeout_seconds: 900,
            max_incoming_bytes: 512 * 1024 * 1024,
            max_file_bytes: 20 * 1024 * 1024,
        }
    }
}
