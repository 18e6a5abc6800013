//! Puts the work of a run that ends into a file among its outputs.

use crate::agent::claim::Claim;
use crate::agent::record::WorkFile;
use crate::agent::run::Run;
use crate::agent::workspace::unfinished_work;
use crate::journal::fact::Fact;
use crate::repository::RepositoryError;
use crate::repository::mirror::Mirror;
use crate::workspace::base::Base;
use crate::workspace::kept_work;

/// Name of the file.
const BUNDLE: &str = "work.bundle";

/// Writes the accepted commits of a run, or else its work in progress, to a file: out of `mirror`,
/// or out of the store where another machine has left other work since. Returns `None` if there is
/// none.
pub(super) async fn put(run: &Run, mirror: Option<&Mirror>) -> anyhow::Result<Option<WorkFile>> {
    let claim = &run.claim;
    let Some(base) = &claim.record.planned.base else {
        return Ok(None);
    };
    // What this process has opened it has brought up to date, and may have worked in.
    let is_newest = run.workspace.mirror.is_some();
    let id = claim.lease.run.to_string();
    let own = match mirror {
        Some(mirror) => name_in(mirror, claim, base).await?.zip(Some(mirror)),
        None => None,
    };
    let copied = if (own.is_none() || !is_newest) && unfinished_work::has_more_than(claim, mirror).await {
        match unfinished_work::put_into_bundle(claim, BUNDLE).await {
            Err(error) if own.is_some() => {
                tracing::warn!(task = %claim.lease.task, "the file has the work that this machine knows: {error:#}");
                None
            }
            copied => copied?,
        }
    } else {
        None
    };
    let (file, name) = match (copied, own) {
        (Some(copied), _) => copied,
        (None, Some((name, mirror))) => {
            let file = claim.outputs.place(BUNDLE).await?;
            mirror.bundle(&id, &base.commit, &file).await?;
            (file, name)
        }
        (None, None) => return Ok(None),
    };
    claim.note(Fact::WorkKept {
        place: file.display().to_string(),
    });
    // A relative path, since the location of the folder of outputs only concerns the operator.
    let folder = claim.services.settings.outputs_dir.file_name();
    let folder = folder.unwrap_or_default().display();
    Ok(Some(WorkFile {
        file: format!("{folder}/{id}/{BUNDLE}"),
        reference: format!("refs/coding-agent/{id}/{name}"),
    }))
}

/// Returns the name of the newest work in the mirror, if that has any.
async fn name_in(mirror: &Mirror, claim: &Claim, base: &Base) -> Result<Option<&'static str>, RepositoryError> {
    let run = claim.lease.run.to_string();
    let accepted = mirror.kept(&run).await?;
    let wip = kept_work::head(mirror, base, &run).await?;
    let is_same = if let (Some(accepted), Some(wip)) = (&accepted, &wip) {
        mirror.tree(accepted).await? == mirror.tree(wip).await?
    } else {
        false
    };
    // With the same files, the accepted commits are those that would have been delivered.
    let wip = wip.filter(|_| !is_same);
    Ok(unfinished_work::newest(&claim.record, accepted.as_ref(), wip.as_ref()))
}
