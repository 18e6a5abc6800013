//! Work that was kept in the mirror and comes out of no container any more.

use crate::repository::incoming::accepting::{Acceptance, Accepted};
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};
use crate::rules::Files;
use crate::workspace::base::Base;
use crate::workspace::error::WorkspaceError;
use crate::workspace::outside_rules;

/// Returns the last snapshot of a run's work that the mirror keeps; `None` if there is none, or it
/// changes nothing.
pub async fn head(mirror: &Mirror, base: &Base, run: &str) -> Result<Option<CommitId>, RepositoryError> {
    let Some(head) = mirror.kept_wip(run).await? else {
        return Ok(None);
    };
    let is_changed = mirror.tree(&head).await? != mirror.tree(&base.commit).await?;
    Ok(is_changed.then_some(head))
}

/// Accepts the last snapshot as the result of the run, judged anew as commits from a container are;
/// `None` if there is nothing to accept.
pub async fn accept(
    mirror: &Mirror,
    base: &Base,
    run: &str,
    files: &Files,
) -> Result<Option<Accepted>, WorkspaceError> {
    let Some(head) = head(mirror, base, run).await? else {
        return Ok(None);
    };
    // The mirror has all of it already, contents of large files included.
    let incoming = mirror.receive(tokio::io::empty()).await?;
    let acceptance = Acceptance {
        base: Some(base.commit.clone()),
        head,
        run: run.to_owned(),
    };
    let accepted = incoming.accept(&acceptance).await?;
    outside_rules::refuse_changes(mirror, base, &accepted.head, files).await?;
    Ok(Some(accepted))
}
