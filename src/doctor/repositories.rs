//! Checks of git's rights in each configured repository: to fetch it, and to set claims in it.

use super::told_apart;
use crate::agent::claim::git_login::login;
use crate::config::Config;
use crate::finding::Finding;
use crate::forge::GitRemote;
use crate::repository::RepositoryError;
use crate::repository::git::address::Remote;
use crate::repository::remote::claiming::Claims;
use crate::repository::remote::fetching::look;

/// Lets git reach each repository as a run does: the API may answer where git does not, for
/// instance behind a proxy of its own or with a certificate that git alone does not know.
pub(super) async fn examine(config: &Config, remotes: Vec<GitRemote>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for GitRemote {
        subject,
        url,
        credentials,
        ..
    } in remotes
    {
        let remote = Remote {
            url,
            login: Some(login(credentials)),
        };
        let looked = look(&config.git, &remote).await;
        findings.push(match looked {
            Ok(true) => claims(config, subject, remote).await,
            Ok(false) => Finding::doubtful(
                subject,
                "can be fetched, but its default branch has no commit yet, so no run can begin",
                "push a first commit (a README is enough), or choose a default branch that is there",
            ),
            Err(error) => told_apart(
                subject,
                error,
                "see that git on this machine reaches the address, as `git ls-remote` does",
            ),
        });
    }
    findings
}

/// Tries whether several installations keep from working on the same items of a repository.
async fn claims(config: &Config, subject: String, remote: Remote) -> Finding {
    let tried = async {
        let claims = Claims::of(&config.git, &config.state_dir, remote).await?;
        claims.try_out().await
    };
    match tried.await {
        Ok(()) => Finding::good(subject, "can be fetched, and takes claims"),
        // That the account may not push is told of the repository.
        Err(RepositoryError::Refused { reason, .. }) if reason.contains("returned error: 40") => {
            Finding::good(subject, "can be fetched")
        }
        Err(error) => Finding::doubtful(
            subject,
            format!("can be fetched, but takes no claims: {error}"),
            "let each installation that works here have a label of its own (`labels.trigger`), or all of them one store; \
             with one installation nothing is missing",
        ),
    }
}
