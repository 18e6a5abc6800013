//! As whom the program commits.

use crate::repository::git::command::Git;
use crate::repository::{CommitId, Config, RepositoryError};

/// Runs a `git commit-tree` with the configured author, who is the committer, too, and returns the
/// commit. Without a `date`, in git's format, it is of now.
pub(in crate::repository) async fn committed(
    git: Git<'_>,
    config: &Config,
    date: Option<&str>,
) -> Result<CommitId, RepositoryError> {
    let what = git.what().to_owned();
    let git = git
        .env("GIT_AUTHOR_NAME", &config.author_name)
        .env("GIT_AUTHOR_EMAIL", &config.author_email)
        .env("GIT_COMMITTER_NAME", &config.author_name)
        .env("GIT_COMMITTER_EMAIL", &config.author_email);
    let git = match date {
        Some(date) => git.env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date),
        None => git,
    };
    let written = git.text().await?;
    written.parse().map_err(|error| RepositoryError::Unexpected {
        what,
        reason: format!("{error}"),
    })
}
