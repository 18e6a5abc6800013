//! Repositories on the worker: bare mirrors only, without checkout, hooks, filters or submodules.
//!
//! Every git process runs with a cleared environment and hardened configuration; credentials are in
//! the environment of the one process that needs them. Commits from a container are judged in
//! quarantine before any of them reaches the mirror.

pub mod added;
pub mod address;
pub mod forgetting;
pub mod git;
pub mod incoming;
pub mod judge;
pub mod message;
pub mod mirror;
pub mod pushing;
pub mod read;
pub mod search;
pub mod signing;

mod difference;
mod failure;
mod forks;
mod group;
mod hardening;
mod limits;
mod listing;
mod local;
mod lock;
mod pack;
mod protected;
mod quarantine;
mod remote;
mod rewrite;
mod surroundings;
#[cfg(test)]
mod tests;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Author and signing key of commits, limits of git, and protected files.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Author and committer of delivered commits.
    pub author_name: String,
    pub author_email: String,
    /// File with the SSH private key that signs delivered commits; if left out, they are not
    /// signed.
    pub signing_key_file: Option<PathBuf>,
    /// Time limit of one git command.
    pub timeout_seconds: u64,
    /// Maximum bytes of new objects that are received from a container.
    pub max_incoming_bytes: u64,
    /// Maximum size of a single file in a delivered commit.
    pub max_file_bytes: u64,
    /// Files that are changed only with a person's approval: those that forges, editors and agents
    /// run or obey, and those that rule this program.
    pub protected_paths: Vec<String>,
    /// Files that may be changed although `protected_paths` matches them.
    pub unprotected_paths: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            author_name: "coding-agent".to_owned(),
            author_email: "coding-agent@localhost".to_owned(),
            signing_key_file: None,
            timeout_seconds: 900,
            max_incoming_bytes: 512 * 1024 * 1024,
            max_file_bytes: 20 * 1024 * 1024,
            protected_paths: protected::paths(),
            unprotected_paths: protected::exceptions(),
        }
    }
}

/// A commit's full object id, hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CommitId(String);

impl CommitId {
    /// Returns git's built-in empty tree, which means "no commit yet" in a comparison.
    pub fn nothing() -> Self {
        Self("4b825dc642cb6eb9a060e54bf8d69288fbee4904".to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The text is not a full commit id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a full commit id: 40 digits or letters a to f are expected")]
pub struct NotACommitId(String);

impl FromStr for CommitId {
    type Err = NotACommitId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if text.len() == 40 && digits {
            return Ok(Self(text.to_owned()));
        }
        Err(NotACommitId(text.chars().take(100).collect()))
    }
}

impl TryFrom<String> for CommitId {
    type Error = NotACommitId;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<CommitId> for String {
    fn from(commit: CommitId) -> Self {
        commit.0
    }
}

/// An error of git. The variant says who must act.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The operator: the credentials or their rights.
    #[error("{what}: access refused: {reason}")]
    Refused { what: String, reason: String },
    /// Nobody; a retry may succeed: the host did not answer.
    #[error("{what}: {reason}")]
    Unavailable { what: String, reason: String },
    /// The branch on the forge or the local folder changed meanwhile; nothing was overwritten.
    #[error("{what}: it has changed meanwhile: {reason}")]
    Moved { what: String, reason: String },
    /// The container's commits break a rule; nothing of them was kept.
    #[error("the commits from the container were refused: {0}")]
    Unacceptable(String),
    /// Any other error.
    #[error("{what}: {reason}")]
    Unexpected { what: String, reason: String },
}

/// Returns `name` if it is a valid branch name that no command takes for an option.
pub fn branch_name(name: &str) -> Result<&str, RepositoryError> {
    let part_is_wrong = |part: &str| part.is_empty() || part.starts_with('.') || part.as_bytes().ends_with(b".lock");
    let forbidden = |char: char| char.is_control() || " ~^:?*[\\".contains(char);
    let wrong = name.len() > 240
        || name.starts_with('-')
        || name.ends_with('.')
        || name == "HEAD"
        || name == "@"
        || name.contains("..")
        || name.contains("@{")
        || name.contains(forbidden)
        || name.split('/').any(part_is_wrong);
    if wrong {
        return Err(RepositoryError::Unexpected {
            what: format!("branch '{}'", name.escape_debug()),
            reason: "this is not a branch name that git allows".to_owned(),
        });
    }
    Ok(name)
}
