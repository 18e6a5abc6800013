//! Pushes accepted commits, each only to the repository that it was accepted for.

use crate::repository::git::address::{Address, Login};
use crate::repository::git::hardening::PUSH;
use crate::repository::git::limits::Effort;
use crate::repository::mirror::Mirror;
use crate::repository::remote::claiming::Fence;
use crate::repository::{CommitId, RepositoryError, branch_name};

/// Git's words about a server that cannot change several refs in one step.
const NOT_TOGETHER: &str = "does not support --atomic";

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
    /// The run that it was accepted for.
    run: String,
    /// The only commit that a branch may be at, for one that was made to follow that.
    follows: Option<CommitId>,
    fence: Option<Fence>,
}

/// Conditions that must hold on the remote for a push to do anything.
#[derive(Clone, Copy, Default)]
struct Conditions<'a> {
    /// The commit that the branch is at.
    expected: Option<&'a CommitId>,
    /// A claim that is renewed in the same step.
    fence: Option<&'a Fence>,
}

impl Mirror {
    /// Deletes `branch` of the mirror's own remote if it is still at `commit`; fails with `Moved`
    /// if it is elsewhere or gone.
    pub async fn delete(&self, login: Option<&Login>, commit: &CommitId, branch: &str) -> Result<(), RepositoryError> {
        let address = self.own_address()?;
        let conditions = Conditions {
            expected: Some(commit),
            fence: None,
        };
        self.push_as(address, login, &format!(":{branch}"), conditions).await
    }

    /// Pushes `what`, which is `id:branch`; without an id the branch is deleted.
    async fn push_as(
        &self,
        address: &Address,
        login: Option<&Login>,
        what: &str,
        conditions: Conditions<'_>,
    ) -> Result<(), RepositoryError> {
        let (id, branch) = what.split_once(':').unwrap_or(("", what));
        let branch = branch_name(branch)?;
        let Conditions { expected, fence } = conditions;
        let lease = expected.map(|commit| format!("--force-with-lease=refs/heads/{branch}:{commit}"));
        let together = fence.map(|fence| {
            let lease = format!("--force-with-lease={}:{}", fence.name, fence.from);
            ["--atomic".to_owned(), lease]
        });
        let renewal = fence.map(|fence| format!("{}:{}", fence.to, fence.name));
        let push = || async {
            self.retried(login, || {
                let intention = format!("pushing to {branch} of {}", address.url());
                let git = address.reach(self.git(intention).with(Effort::Transfer, self.config()), login)?;
                Ok(git
                    .args(PUSH)
                    .args(&lease)
                    .args(together.iter().flatten())
                    .args(["--", address.url()])
                    .arg(format!("{id}:refs/heads/{branch}"))
                    .args(&renewal))
            })
            .await
            .map(drop)
        };
        match push().await {
            // If the response was lost, git's HTTP client repeats the push, which meets the branch
            // that the first one made. Another push reads the branch again and finds nothing to do,
            // or that it really moved.
            Err(RepositoryError::Moved { .. }) => push().await,
            ended => ended,
        }
    }

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
            run: run.to_owned(),
            follows: None,
            fence: None,
        })
    }
}

impl Pushable {
    /// Has every push renew the claim `name` as well, which is at `from`: both are done or neither.
    /// Returns the commit at which the claim is then, too.
    pub async fn fenced(self, name: &str, from: &CommitId, text: &str) -> Result<(Self, CommitId), RepositoryError> {
        let fence = Fence::in_mirror(&self.mirror, name, from, text).await?;
        let renewed = fence.to.clone();
        let fence = Some(fence);
        Ok((Self { fence, ..self }, renewed))
    }

    /// Returns one commit with the same files and message on top of `from`, or `from` itself if
    /// that has the files: a branch that is at `from` gets it without force. It is pushed to no
    /// other branch, since nobody judged here what lies below it. Doing it twice gives the same
    /// commit.
    pub async fn on_top_of(&self, from: &CommitId) -> Result<Self, RepositoryError> {
        let commit = self.mirror.on_top_of(from, &self.commit, &self.run).await?;
        let follows = Some(from.clone());
        Ok(Self {
            commit,
            follows,
            ..self.clone()
        })
    }

    /// True if it goes to the repository at `url`.
    pub fn goes_to(&self, url: &str) -> bool {
        self.mirror.is_of(url)
    }

    pub fn commit(&self) -> &CommitId {
        &self.commit
    }

    /// Pushes the commit by id to `branch`, fast-forward only. It is no error if it is there
    /// already.
    pub async fn push(&self, login: Option<&Login>, branch: &str) -> Result<(), RepositoryError> {
        self.push_from(login, None, branch).await
    }

    /// Advances `branch` from `from`, an ancestor of the commit. Fails with `Moved` if the branch
    /// is elsewhere or gone. From any other commit the branch is forced, which a forge may refuse
    /// (`ForceRefused`). The forge compares and sets atomically; a check before could only be
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
        self.mirror.upload_contents(&self.address, login, &self.commit).await?;
        let what = format!("{}:{branch}", self.commit);
        let fence = self.fence.as_ref();
        let expected = self.follows.as_ref().or(from);
        let conditions = Conditions { expected, fence };
        match (
            self.mirror.push_as(&self.address, login, &what, conditions).await,
            fence,
        ) {
            (Err(RepositoryError::Unexpected { reason, .. }), Some(fence)) if reason.contains(NOT_TOGETHER) => {
                // The next best: whoever has lost the claim learns of it here.
                let (from, to) = (Some(&fence.from), Some(&fence.to));
                self.mirror.push_claim(login, &fence.name, from, to).await?;
                let conditions = Conditions {
                    fence: None,
                    ..conditions
                };
                self.mirror.push_as(&self.address, login, &what, conditions).await
            }
            (pushed, _) => pushed,
        }
    }
}
