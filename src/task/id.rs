//! The names of tasks and runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// The item that is worked on, written `github:owner/repo#12`, `gitlab:group/project#34` (issue),
/// `gitlab:group/project!34` (merge request) or `local:<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskId {
    /// GitHub numbers issues and pull requests together, so the id does not tell which it is.
    GitHub {
        repository: String,
        number: u64,
    },
    GitLabIssue {
        project: String,
        iid: u64,
    },
    GitLabMergeRequest {
        project: String,
        iid: u64,
    },
    Local {
        id: Uuid,
    },
}

impl TaskId {
    /// Returns the item's number, or `None` for a local task.
    pub fn number(&self) -> Option<u64> {
        match self {
            Self::GitHub { number, .. } => Some(*number),
            Self::GitLabIssue { iid, .. } | Self::GitLabMergeRequest { iid, .. } => Some(*iid),
            Self::Local { .. } => None,
        }
    }
}

impl TaskId {
    /// Returns the pull/merge request `number` in the repository of this item; a local task has
    /// none.
    #[must_use]
    pub fn change(&self, number: u64) -> Option<Self> {
        match self {
            Self::GitHub { repository, .. } => Some(Self::GitHub {
                repository: repository.clone(),
                number,
            }),
            Self::GitLabIssue { project, .. } | Self::GitLabMergeRequest { project, .. } => {
                Some(Self::GitLabMergeRequest {
                    project: project.clone(),
                    iid: number,
                })
            }
            Self::Local { .. } => None,
        }
    }

    /// Returns the repository or project that the item lives in; a local task has none.
    pub fn repository(&self) -> Option<&str> {
        match self {
            Self::GitHub { repository, .. } => Some(repository),
            Self::GitLabIssue { project, .. } | Self::GitLabMergeRequest { project, .. } => Some(project),
            Self::Local { .. } => None,
        }
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::GitHub { repository, number } => write!(formatter, "github:{repository}#{number}"),
            Self::GitLabIssue { project, iid } => write!(formatter, "gitlab:{project}#{iid}"),
            Self::GitLabMergeRequest { project, iid } => write!(formatter, "gitlab:{project}!{iid}"),
            Self::Local { id } => write!(formatter, "local:{id}"),
        }
    }
}

/// Why a text is not the name of a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not a task; write github:owner/repo#12, gitlab:group/project#34, gitlab:group/project!34 or local:<id>"
)]
pub struct NotATask(String);

impl FromStr for TaskId {
    type Err = NotATask;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).ok_or_else(|| NotATask(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<TaskId> {
    let (platform, rest) = text.split_once(':')?;
    if platform == "local" {
        return Some(TaskId::Local { id: rest.parse().ok()? });
    }
    let at = rest.rfind(['#', '!'])?;
    let (path, number) = (&rest[..at], rest[at + 1..].parse().ok()?);
    let depth = path.split('/').count();
    if path
        .split('/')
        .any(|part| part.is_empty() || part.contains(char::is_whitespace))
    {
        return None;
    }
    match (platform, &rest[at..=at]) {
        ("github", "#") if depth == 2 => Some(TaskId::GitHub {
            repository: path.to_owned(),
            number,
        }),
        ("gitlab", "#") if depth >= 2 => Some(TaskId::GitLabIssue {
            project: path.to_owned(),
            iid: number,
        }),
        ("gitlab", "!") if depth >= 2 => Some(TaskId::GitLabMergeRequest {
            project: path.to_owned(),
            iid: number,
        }),
        _ => None,
    }
}

impl Serialize for TaskId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for TaskId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// One attempt at a task. Version 7, so that ids sort by the time they were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RunId(pub Uuid);

impl RunId {
    /// Returns a new id that sorts after all earlier ones.
    pub fn new() -> Self {
        Self(Uuid::now_v7())
    }
}

impl Default for RunId {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for RunId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_name_is_read_back_as_it_was_written() {
        for text in [
            "github:owner/repo#12",
            "gitlab:group/project#34",
            "gitlab:group/sub/project!34",
            "local:019aa6b2-0000-7000-8000-000000000000",
        ] {
            assert_eq!(text.parse::<TaskId>().map(|task| task.to_string()), Ok(text.to_owned()));
        }
    }

    #[test]
    fn what_is_not_a_task_is_refused_with_the_forms_that_are() {
        for text in [
            "",
            "github:repo#1",
            "github:a/b!1",
            "github:a/b#x",
            "gitlab:project#1",
            "local:7",
            "svn:a/b#1",
            "github:a/ #1",
        ] {
            let error = text.parse::<TaskId>().unwrap_err().to_string();
            assert!(error.contains("github:owner/repo#12"), "{error}");
        }
    }
}
