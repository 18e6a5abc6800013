//! Commits on their way out: each may go to the one repository that it was accepted for.

use super::address::{Address, Login};
use super::mirror::Mirror;
use super::{CommitId, RepositoryError};

/// A commit that was accepted for one repository and can be pushed to no other.
///
/// It holds the mirror that the commit was accepted into, and that mirror's own address; there is
/// no way to name another destination. What comes from a fork lies in the fork's mirror, so no
/// commit of a fork can end up in the repository that the fork was made of, and no commit of that
/// repository in a fork.
#[derive(Debug, Clone)]
pub struct Pushable {
    mirror: Mirror,
    address: Address,
    commit: CommitId,
}

impl Mirror {
    /// Returns `commit` as one that may be pushed to this mirror's repository, if it is what was
    /// accepted of `run`, or is part of that. The mirror is asked each time: a commit whose id was
    /// read from the store is judged like any other.
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

    /// Pushes the commit by id to `branch`, fast-forward only. Pushing what is there already is no
    /// error.
    pub async fn push(&self, login: Option<&Login>, branch: &str) -> Result<(), RepositoryError> {
        self.push_from(login, None, branch).await
    }

    /// Moves `branch` on from `from`, of which the commit is a descendant. `Moved` where the branch
    /// is elsewhere or gone: the other side compares and sets in one step, so a look beforehand
    /// would only be older.
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
