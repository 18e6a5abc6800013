//! Requests by other programs to take paths into an index or to leave them out.
//!
//! The list of files is read from git, never from the caller: a path that is named and not there is
//! answered as gone, a file that only moved is not parsed again. So a caller that forgets one, or
//! names one twice, does no harm.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::filling::Filled;
use super::left_out::{self, with_folders};
use super::stored::places::Places;
use super::{Index, IndexError};
use crate::repository::CommitId;

/// The paths that are to be taken in: listed, or as the difference between two states.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Ingest {
    /// Files, and folders with all that is in them.
    pub paths: Vec<String>,
    /// The files that changed, instead of `paths` or in addition to them.
    pub diff: Option<Diff>,
}

/// The files that differ between two states, by kind of change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Diff {
    pub added: Vec<String>,
    pub modified: Vec<String>,
    pub deleted: Vec<String>,
    pub renamed: Vec<Renamed>,
}

/// A file that moved.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Renamed {
    pub from: String,
    pub to: String,
}

/// The requested files as the index has them now.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Ingested {
    /// The files that were named, or lie in folders that were.
    pub files: Vec<TakenIn>,
    /// Paths that were named and do not exist: nothing is found in them any more.
    pub gone: Vec<String>,
    /// Files whose content was new, and was parsed.
    pub parsed: usize,
}

/// A file of the index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TakenIn {
    pub path: String,
    /// Functions, classes, sections and other places in it.
    pub places: usize,
}

/// The paths that are left out from now on, until they are taken in again.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pruned {
    pub paths: Vec<String>,
    /// Files of the index that are in no answer because of these paths.
    pub files: usize,
}

/// Why paths were not taken in, or not left out.
#[derive(Debug, thiserror::Error)]
pub enum NotDone {
    /// The caller must ask for something else.
    #[error("{0}")]
    Unfit(String),
    #[error(transparent)]
    Index(#[from] IndexError),
}

impl Ingest {
    /// Returns all paths that are named, each once.
    fn named(&self) -> Result<Vec<String>, NotDone> {
        let diff = self.diff.iter().flat_map(|diff| {
            let moved = diff.renamed.iter().flat_map(|renamed| [&renamed.from, &renamed.to]);
            let all = diff.added.iter().chain(&diff.modified).chain(&diff.deleted);
            all.chain(moved)
        });
        normal(self.paths.iter().chain(diff))
    }
}

impl Index {
    /// Takes paths in, which are left out no longer. The index has been brought up to the commit,
    /// and `filled` is what that came to.
    pub async fn ingest(&self, commit: &CommitId, filled: Filled, asked: &Ingest) -> Result<Ingested, NotDone> {
        let named = asked.named()?;
        for path in &named {
            self.left_out().remove(path).map_err(|error| self.unkept(&error))?;
        }
        let files = self.places_in(commit, &named).await?;
        let there: HashSet<&str> = files.iter().flat_map(|file| with_folders(&file.path)).collect();
        let gone = named.iter().filter(|path| !there.contains(path.as_str()));
        Ok(Ingested {
            gone: gone.cloned().collect(),
            files,
            parsed: filled.read,
        })
    }

    /// Leaves paths out of every answer, files and folders with all that is in them.
    pub async fn prune(&self, commit: &CommitId, paths: &[String]) -> Result<Pruned, NotDone> {
        let named = normal(paths.iter())?;
        if self.left_out().count() + named.len() > left_out::MOST {
            return Err(NotDone::Unfit(format!(
                "more than {} paths would be left out; name folders",
                left_out::MOST
            )));
        }
        for path in &named {
            self.left_out().add(path).map_err(|error| self.unkept(&error))?;
        }
        let files = self.places_in(commit, &named).await?.len();
        Ok(Pruned { paths: named, files })
    }

    /// Returns the files that are named, or lie in folders that are, with the number of places.
    async fn places_in(&self, commit: &CommitId, named: &[String]) -> Result<Vec<TakenIn>, IndexError> {
        let tree = self.tree(commit).await?;
        let named: HashSet<&str> = named.iter().map(String::as_str).collect();
        let files = tree.files.iter();
        let files = files.filter(|file| with_folders(&file.path).any(|part| named.contains(part)));
        let mut found: Vec<TakenIn> = files
            .map(|file| TakenIn {
                path: file.path.clone(),
                places: tree.places_of(file).map_or(0, Places::count),
            })
            .collect();
        found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    fn unkept(&self, error: &std::io::Error) -> IndexError {
        IndexError::Unusable {
            file: self.left_out().folder().display().to_string(),
            reason: format!("{error}; see that this user may write there, and that the disk has room"),
        }
    }
}

/// Returns paths as the index has them: below the root, without `.` and final slashes, each once.
fn normal<'p>(paths: impl Iterator<Item = &'p String>) -> Result<Vec<String>, NotDone> {
    let (mut found, mut seen) = (Vec::new(), HashSet::new());
    for path in paths {
        let parts: Vec<&str> = path
            .split('/')
            .filter(|part| !part.is_empty() && *part != ".")
            .collect();
        let is_fit = !path.starts_with('/') && !parts.is_empty() && !parts.contains(&"..") && !path.contains('\0');
        if !is_fit {
            let shown: String = path.chars().filter(|letter| !letter.is_control()).take(200).collect();
            return Err(NotDone::Unfit(format!(
                "'{shown}' is no path below the root: write it as git shows it, such as src/app.py or vendor"
            )));
        }
        let path = parts.join("/");
        if seen.insert(path.clone()) {
            found.push(path);
        }
        if found.len() > left_out::MOST {
            return Err(NotDone::Unfit(format!(
                "more than {} paths were named; name folders",
                left_out::MOST
            )));
        }
    }
    if found.is_empty() {
        return Err(NotDone::Unfit("no path was named".to_owned()));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::{Ingest, normal};

    #[test]
    fn paths_lie_below_the_root() {
        let of = |path: &str| normal([path.to_owned()].iter()).map_err(|error| error.to_string());
        assert_eq!(of("./src//a.py").unwrap(), ["src/a.py"]);
        assert_eq!(of("vendor/").unwrap(), ["vendor"]);
        for path in ["", ".", "/etc/passwd", "../a", "a/../../b", "a\0"] {
            assert!(of(path).unwrap_err().contains("no path below the root"), "{path}");
        }
    }

    #[test]
    fn a_difference_names_both_ends_of_a_move_each_once() {
        let asked: Ingest = serde_json::from_value(serde_json::json!({
            "diff": {"modified": ["a.py"], "deleted": ["b.py"], "renamed": [{"from": "b.py", "to": "c.py"}]}
        }))
        .unwrap();
        assert_eq!(asked.named().unwrap(), ["a.py", "b.py", "c.py"]);
        assert!(Ingest::default().named().is_err());
    }
}
