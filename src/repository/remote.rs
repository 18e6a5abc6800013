//! Fetches and pushes over the network. A mirror reaches only the repository that it mirrors.

use std::fs::File;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::address::{Address, Login};
use super::git::Git;
use super::limits::Effort;
use super::lock;
use super::mirror::Mirror;
use super::{CommitId, RepositoryError, branch_name};

/// Pauses before the second, third and fourth attempt.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(500),
    Duration::from_secs(2),
    Duration::from_secs(6),
];

impl Mirror {
    /// Fetches all branches and tags, and deletes those that are gone on the remote.
    /// `refs/coding-agent/` is left alone.
    pub(super) async fn fetch_from(
        &self,
        address: &Address,
        login: Option<&Login>,
        lock: &File,
    ) -> Result<(), RepositoryError> {
        self.retried(login, || {
            let held = lock.try_clone().map_err(|error| lock::at(self.path(), &error))?;
            let git = self
                .git(format!("fetching {}", address.url()))
                .with(Effort::Transfer, self.config());
            let git = address.reach(git, login);
            // A git that outlives this process keeps the lock as its standard input, so nobody else
            // writes meanwhile.
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

    /// Deletes `branch` of the mirror's own remote if it is still at `commit`; fails with `Moved`
    /// if it is elsewhere or gone.
    pub async fn delete(&self, login: Option<&Login>, commit: &CommitId, branch: &str) -> Result<(), RepositoryError> {
        let address = self.own_address()?;
        self.push_as(address, login, &format!(":{branch}"), Some(commit)).await
    }

    /// Pushes `what`, which is `id:branch`; without an id the branch is deleted.
    pub(super) async fn push_as(
        &self,
        address: &Address,
        login: Option<&Login>,
        what: &str,
        expected: Option<&CommitId>,
    ) -> Result<(), RepositoryError> {
        let (id, branch) = what.split_once(':').unwrap_or(("", what));
        let branch = branch_name(branch)?;
        let lease = expected.map(|commit| format!("--force-with-lease=refs/heads/{branch}:{commit}"));
        let push = || {
            self.retried(login, || {
                let intention = format!("pushing to {branch} of {}", address.url());
                let git = address.reach(self.git(intention).with(Effort::Transfer, self.config()), login);
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
                    .arg(format!("{id}:refs/heads/{branch}")))
            })
        };
        match push().await {
            // If the response was lost, git's HTTP client repeats the push, which meets the branch
            // that the first one made. Another push reads the branch again and finds nothing to do,
            // or that it really moved.
            Err(RepositoryError::Moved { .. }) => push().await,
            ended => ended,
        }
    }

    /// Runs the command and retries it while the remote is unavailable or does not know a new login
    /// yet, up to four times within the time limit of one command.
    async fn retried(
        &self,
        login: Option<&Login>,
        command: impl Fn() -> Result<Git<'static>, RepositoryError>,
    ) -> Result<(), RepositoryError> {
        let end = Instant::now() + Duration::from_secs(self.config().timeout_seconds);
        let is_new = login.is_some_and(|login| login.is_new);
        for pause in PAUSES {
            match command()?.bytes().await {
                Err(RepositoryError::Unavailable { what, reason }) if Instant::now() + pause < end => {
                    tracing::warn!(what, reason, "git will be tried again");
                }
                Err(RepositoryError::Refused { what, reason }) if is_new && Instant::now() + pause < end => {
                    tracing::debug!(what, reason, "a new login was refused, and is tried again");
                }
                ended => return ended.map(drop),
            }
            sleep(pause).await;
        }
        command()?.bytes().await.map(drop)
    }
}
