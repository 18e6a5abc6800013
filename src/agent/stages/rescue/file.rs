//! Puts the work of a run that ends into a file among its outputs.

use crate::agent::claim::Claim;
use crate::agent::record::WorkFile;
use crate::agent::workspace::unfinished_work;
use crate::journal::fact::Fact;
use crate::repository::mirror::Mirror;
use crate::repository::{CommitId, RepositoryError};

/// Name of the file.
const BUNDLE: &str = "work.bundle";

/// Writes the accepted commits of a run, or else its work in progress, to a file: out of `mirror`,
/// or out of the store where that does not have them. Returns `None` if there are none.
pub(super) async fn put(claim: &Claim, mirror: Option<&Mirror>) -> anyhow::Result<Option<WorkFile>> {
    let Some(base) = &claim.record.planned.base else {
        return Ok(None);
    };
    let run = claim.lease.run.to_string();
    let name = match mirror {
        Some(mirror) => name_in(mirror, &run, &base.commit).await?,
        None => None,
    };
    let (file, name) = match (mirror, name) {
        (Some(mirror), Some(name)) => {
            let file = claim.outputs.place(BUNDLE).await?;
            mirror.bundle(&run, &base.commit, &file).await?;
            (file, name)
        }
        _ => match unfinished_work::put_into_bundle(claim, BUNDLE).await? {
            Some(written) => written,
            None => return Ok(None),
        },
    };
    claim.note(Fact::WorkKept {
        place: file.display().to_string(),
    });
    // A relative path, since the location of the folder of outputs only concerns the operator.
    let folder = claim.services.settings.outputs_dir.file_name();
    let folder = folder.unwrap_or_default().display();
    Ok(Some(WorkFile {
        file: format!("{folder}/{run}/{BUNDLE}"),
        reference: format!("refs/coding-agent/{run}/{name}"),
    }))
}

/// Returns the name of the work in the mirror, if that has any.
async fn name_in(mirror: &Mirror, run: &str, base: &CommitId) -> Result<Option<&'static str>, RepositoryError> {
    let accepted = mirror.kept(run).await?.filter(|accepted| accepted != base);
    Ok(match (accepted, mirror.kept_wip(run).await?) {
        (Some(_), _) => Some("accepted"),
        (None, Some(_)) => Some("wip"),
        (None, None) => None,
    })
}
