//! Pushes accepted commits, each only to the repository that it was accepted for.

use super::address::{Address, Login};
use super::mirror::Mirror;
use super::{CommitId, RepositoryError};

/// An accepted commit that can be pushed to one repository and no other.
///
/// It holds the mirror that the commit was accepted into and that mirror's address; no other
/// destination can be named. A fork has its own mirror, so no commit of a fork can reach the
/// repository that it was forked from, and no commit of that repository the fork.
#[derive(Debug, Clone)]
pub struct Pushable {
    mirror: Mirror,
    address: Address,
    commit: CommitId,
}

impl Mirror {
    /// Returns `commit` for pushing to this mirror's repository, if it is the accepted result of
    /// `run` or an ancestor of it. Checks the mirror each time: an id from the store is not
    /// trusted.
    pub async fn pushable(&self, run: &str, commit: &CommitId) -> Result<Pushable, RepositoryError> {
        let address = self.own_address()?.clone();
        let is_accepted = match self.kept(run).await? {
            Some(accepted) if accepted == *commit => true,
            Some(accepted) => {
                self.git(format!("looking whether {commit} was accepted"))
                    .args(["merge-base", "--is-ancestor", commit.as_str(), accepted.as_str()])
                    .answer()
                    .await?
            }
            None => false,
        };
        if !is_accepted {
            return Err(RepositoryError::Unexpected {
                what: format!("pushing {commit}"),
                reason: format!(
                    "it was not accepted for {} in this run, so it is not pushed there",
                    address.url()
                ),
            });
        }
        Ok(Pushable {
            mirror: self.clone(),
            address,
            commit: commit.clone(),
        })
    }
}

impl Pushable {
    pub fn commit(&self) -> &CommitId {
        &self.commit
    }

    /// Pushes the commit by id to `branch`, fast-forward only. It is no error if it is there
    /// already.
    pub async fn push(&self, login: Option<&Login>, branch: &str) -> Result<(), RepositoryError> {
        self.push_from(login, None, branch).await
    }

    /// Advances `branch` from `from`, an ancestor of the commit. Fails with `Moved` if the branch
    /// is elsewhere or gone. The forge compares and sets atomically; a check before could only be
    /// outdated.
    pub async fn advance(&self, login: Option<&Login>, from: &CommitId, branch: &str) -> Result<(), RepositoryError> {
        self.push_from(login, Some(from), branch).await
    }

    async fn push_from(
        &self,
        login: Option<&Login>,
        from: Option<&CommitId>,
        branch: &str,
    ) -> Result<(), RepositoryError> {
        let what = format!("{}:{branch}", self.commit);
        self.mirror.push_as(&self.address, login, &what, from).await
    }
}
