//! The way over the network in both directions.

use std::fs::File;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::address::{Address, Remote};
use super::git::Git;
use super::limits::Effort;
use super::lock;
use super::mirror::Mirror;
use super::{CommitId, RepositoryError, branch_name};

/// Waits before the second, third and fourth attempt.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(6),
];

impl Mirror {
    /// Fetches all branches and tags; what was deleted there goes here too. `refs/coding-agent/` is left alone.
    pub(super) async fn fetch_from(
        &self,
        address: &Address,
        remote: &Remote,
        lock: &File,
    ) -> Result<(), RepositoryError> {
        self.retried(|| {
            let held = lock.try_clone().map_err(|error| lock::at(self.path(), &error))?;
            let git = self
                .git(format!("fetching {}", address.url()))
                .with(Effort::Transfer, self.config());
            let git = address.reach(git, remote);
            // A git that outlives this process holds the lock on as its standard input: nobody else writes meanwhile.
            Ok(git
                .holding(held)
                .args([
                    "fetch",
                    "--quiet",
                    "--prune",
                    "--no-tags",
                    "--no-write-fetch-head",
                    "--no-recurse-submodules",
                ])
                .args([
                    "--",
                    address.url(),
                    "+refs/heads/*:refs/heads/*",
                    "+refs/tags/*:refs/tags/*",
                ]))
        })
        .await
    }

    /// Pushes a commit of the mirror by id to `branch` of `remote`, fast-forward only. Pushing what is there already is no error.
    pub async fn push(&self, remote: &Remote, commit: &CommitId, branch: &str) -> Result<(), RepositoryError> {
        self.push_with(remote, commit, branch, None).await
    }

    /// Moves `branch` of `remote` on from `from`, of which `commit` is a descendant. `Moved` where the branch is elsewhere or
    /// gone: the other side compares and sets in one step, so a look beforehand would only be older.
    pub async fn advance(
        &self,
        remote: &Remote,
        from: &CommitId,
        commit: &CommitId,
        branch: &str,
    ) -> Result<(), RepositoryError> {
        self.push_with(remote, commit, branch, Some(from)).await
    }

    /// Deletes `branch` of `remote` if it is still at `commit`; `Moved` where it is elsewhere or gone.
    pub async fn delete(&self, remote: &Remote, commit: &CommitId, branch: &str) -> Result<(), RepositoryError> {
        self.push_as(remote, "", branch, Some(commit)).await
    }

    async fn push_with(
        &self,
        remote: &Remote,
        commit: &CommitId,
        branch: &str,
        expected: Option<&CommitId>,
    ) -> Result<(), RepositoryError> {
        self.push_as(remote, commit.as_str(), branch, expected).await
    }

    /// Without `what` is to be there the branch is deleted.
    async fn push_as(
        &self,
        remote: &Remote,
        what: &str,
        branch: &str,
        expected: Option<&CommitId>,
    ) -> Result<(), RepositoryError> {
        let branch = branch_name(branch)?;
        let address = Address::of(remote)?;
        let lease = expected.map(|commit| format!("--force-with-lease=refs/heads/{branch}:{commit}"));
        let push = || {
            self.retried(|| {
                let intention = format!("pushing to {branch} of {}", address.url());
                let git = address.reach(self.git(intention).with(Effort::Transfer, self.config()), remote);
                Ok(git
                    .args([
                        "push",
                        "--porcelain",
                        "--no-verify",
                        "--no-follow-tags",
                        "--no-recurse-submodules",
                    ])
                    .args(&lease)
                    .args(["--", address.url()])
                    .arg(format!("{what}:refs/heads/{branch}")))
            })
        };
        match push().await {
            // Where the answer was lost, git's HTTP client sends the push again, and that meets the branch the first one
            // made. A second push looks at the branch anew and finds nothing to do, or that it really moved.
            Err(RepositoryError::Moved { .. }) => push().await,
            ended => ended,
        }
    }

    /// Runs the command, again and again while the other side is not there, until the time for one command is used up.
    async fn retried(
        &self,
        command: impl Fn() -> Result<Git<'static>, RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let end = Instant::now() + Duration::from_secs(self.config().timeout_seconds);
        for pause in PAUSES {
            match command()?.bytes().await {
                Err(RepositoryError::Unavailable { what, reason }) if Instant::now() + pause < end => {
                    tracing::warn!(what, reason, "git will be tried again");
                    sleep(pause).await;
                }
                ended => return ended.map(drop),
            }
        }
        command()?.bytes().await.map(drop)
    }
}
