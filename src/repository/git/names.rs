//! Names that git gets from others: ids of commits and branches.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::repository::git::error::RepositoryError;

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
