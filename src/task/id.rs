//! The names of tasks and runs.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;

/// A configured forge: `github` or `gitlab`, or the `name` of a further entry of these sections.
/// Small letters, digits and `-`, so that it can stand before the `:` of a task's id.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct HostName(String);

impl HostName {
    /// Parses a name; `None` if it is not a valid one.
    pub fn parse(name: &str) -> Option<Self> {
        let is_character =
            |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
        let is_name = !name.is_empty() && name != LOCAL && name.chars().all(is_character);
        is_name.then(|| Self(name.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The kind of an item, because a forge may number two kinds separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ItemKind {
    /// `#12`: an issue; also a pull request, on a forge that numbers both together.
    Issue,
    /// `!12`: a merge request, on a forge that numbers them apart.
    MergeRequest,
}

impl ItemKind {
    /// Returns the character before the number in an id.
    pub fn character(self) -> char {
        match self {
            Self::Issue => '#',
            Self::MergeRequest => '!',
        }
    }
}

/// An item of a forge, written `host:owner/repo#12` or `host:group/project!34`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemId {
    pub host: HostName,
    /// The full name of the repository or project, with its owner or groups.
    pub repository: String,
    pub kind: ItemKind,
    pub number: u64,
}

impl fmt::Display for ItemId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let character = self.kind.character();
        write!(formatter, "{}:{}{character}{}", self.host, self.repository, self.number)
    }
}

/// The task that is worked on: an item of a forge, or `local:<id>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TaskId {
    Item(ItemId),
    Local { id: Uuid },
}

impl TaskId {
    /// Returns the item of a forge; a local task is none.
    pub fn item(&self) -> Option<&ItemId> {
        match self {
            Self::Item(item) => Some(item),
            Self::Local { .. } => None,
        }
    }

    /// Returns the item's number, or `None` for a local task.
    pub fn number(&self) -> Option<u64> {
        self.item().map(|item| item.number)
    }

    /// Returns the repository or project that the item lives in; a local task has none.
    pub fn repository(&self) -> Option<&str> {
        self.item().map(|item| item.repository.as_str())
    }
}

impl fmt::Display for TaskId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(item) => item.fmt(formatter),
            Self::Local { id } => write!(formatter, "{LOCAL}:{id}"),
        }
    }
}

/// Takes the place of the host in the id of a task that has none.
const LOCAL: &str = "local";
/// The host name whose repositories have no groups and whose pull requests are numbered with the
/// issues. A slip in such an id is told at once, instead of that there is no such task.
const FLAT_HOST: &str = "github";

/// The error for a text that is no task id.
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
    let (host, rest) = text.split_once(':')?;
    if host == LOCAL {
        return Some(TaskId::Local { id: rest.parse().ok()? });
    }
    let host = HostName::parse(host)?;
    let at = rest.rfind(['#', '!'])?;
    let (repository, number) = (&rest[..at], rest[at + 1..].parse().ok()?);
    let kind = match &rest[at..=at] {
        "#" => ItemKind::Issue,
        _ => ItemKind::MergeRequest,
    };
    let is_part = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
    let depth = repository.split('/').count();
    let is_known_form = host.as_str() != FLAT_HOST || (depth == 2 && kind == ItemKind::Issue);
    let is_item = depth >= 2 && repository.split('/').all(is_part) && is_known_form;
    is_item.then(|| {
        TaskId::Item(ItemId {
            host,
            repository: repository.to_owned(),
            kind,
            number,
        })
    })
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

/// Identifies one attempt at a task. Version 7, so that ids sort by time of creation.
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
            "ghes:owner/repo#12",
            "lab-2:group/sub/project!34",
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
            "Svn:a/b#1",
            "s_n:a/b#1",
            ":a/b#1",
            "svn:b#1",
            "github:a/ #1",
        ] {
            let error = text.parse::<TaskId>().unwrap_err().to_string();
            assert!(error.contains("github:owner/repo#12"), "{error}");
        }
    }
}
