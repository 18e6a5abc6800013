//! Submodules of a commit: where `.gitmodules` says that they come from, and which commit belongs
//! into each folder.
//!
//! Git's own commands for submodules are not used: they clone from where a stranger's file says.

use std::collections::HashMap;

use crate::repository::config::Submodules;
use crate::repository::git::address::Address;
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};

/// Maximum number of submodules that are looked at.
const MOST: usize = 200;
const LARGEST_LIST: u64 = 256 * 1024;

/// A folder of a commit that holds another repository's commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submodule {
    pub path: String,
    /// The address, as the commit has it.
    pub url: Option<String>,
    pub commit: CommitId,
}

/// A submodule whose contents are on this machine.
#[derive(Debug, Clone)]
pub struct SubmoduleContents {
    pub path: String,
    /// The mirror with the contents.
    pub mirror: Mirror,
    /// The tree of the submodule's commit.
    pub tree: CommitId,
}

impl Mirror {
    /// Returns the submodules of a commit, at most 200, in the order of their paths.
    pub async fn submodules(&self, commit: &CommitId) -> Result<Vec<Submodule>, RepositoryError> {
        // Where nothing says where they come from, they are folders without meaning.
        if self.file(commit, ".gitmodules", LARGEST_LIST).await?.is_none() {
            return Ok(Vec::new());
        }
        let urls = self.addresses_in(commit).await?;
        let listed = self
            .git(format!("listing the submodules of {commit}"))
            .args(["ls-tree", "-r", "-z", "--full-tree", commit.as_str()])
            .bytes()
            .await?;
        let links = listed.split(|byte| *byte == 0).filter_map(|line| {
            let line = std::str::from_utf8(line).ok()?;
            let (head, path) = line.split_once('\t')?;
            let id = head.strip_prefix("160000 commit ")?;
            Some((path.to_owned(), id.parse().ok()?))
        });
        let found = links.take(MOST).map(|(path, commit)| Submodule {
            url: urls.get(&path).cloned(),
            path,
            commit,
        });
        Ok(found.collect())
    }

    /// Returns the submodules of a commit whose contents were fetched.
    pub async fn submodule_contents(&self, commit: &CommitId) -> Result<Vec<SubmoduleContents>, RepositoryError> {
        if self.config().submodules == Submodules::None || self.own_address().is_err() || !self.is_own().await {
            return Ok(Vec::new());
        }
        let mut there = Vec::new();
        for submodule in self.submodules(commit).await? {
            let mirror = self.address_of(&submodule).and_then(|address| self.sibling(&address));
            let Some(mirror) = mirror else { continue };
            if !is_plain(&submodule.path) || !mirror.path().join("HEAD").exists() {
                continue;
            }
            if let Ok(tree) = mirror.tree(&submodule.commit).await {
                there.push(SubmoduleContents {
                    path: submodule.path,
                    mirror,
                    tree,
                });
            }
        }
        Ok(there)
    }

    /// Returns where a submodule is, if that is on the same forge.
    pub(in crate::repository) fn address_of(&self, submodule: &Submodule) -> Option<Address> {
        let own = self.own_address().ok()?;
        own.beside(submodule.url.as_deref()?)
    }

    /// Returns what `.gitmodules` says, by path. A file that git cannot read says nothing.
    async fn addresses_in(&self, commit: &CommitId) -> Result<HashMap<String, String>, RepositoryError> {
        let mut printed = Vec::new();
        self.git(format!("reading .gitmodules of {commit}"))
            .args(["config", "-z", "--blob", &format!("{commit}:.gitmodules")])
            .args(["--get-regexp", r"^submodule\..*\.(path|url)$"])
            .each(|chunk| {
                printed.extend_from_slice(chunk);
                std::ops::ControlFlow::Continue(())
            })
            .await?;
        let printed = String::from_utf8_lossy(&printed);
        let (mut paths, mut urls) = (HashMap::new(), HashMap::new());
        for (key, value) in printed.split('\0').filter_map(|entry| entry.split_once('\n')) {
            let Some((name, field)) = key.strip_prefix("submodule.").and_then(|key| key.rsplit_once('.')) else {
                continue;
            };
            let found = if field == "path" { &mut paths } else { &mut urls };
            found.insert(name.to_owned(), value.to_owned());
        }
        let named = paths.into_iter();
        Ok(named
            .filter_map(|(name, path)| Some((path, urls.remove(&name)?)))
            .collect())
    }
}

/// True for a path below the project that is none of git's own. Old histories may have others.
fn is_plain(path: &str) -> bool {
    let is_plain_name = |name: &str| !matches!(name, "" | "." | "..") && !name.eq_ignore_ascii_case(".git");
    !path.contains(char::is_control) && path.split('/').all(is_plain_name)
}
