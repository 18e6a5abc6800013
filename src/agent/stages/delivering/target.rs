//! The branch that a new request is to be merged into.

use std::sync::Arc;

use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::fetching;
use crate::agent::workspace::source;
use crate::forge::{Forge, Item};
use crate::workspace::base::Base;

/// Returns the planned branch while it is there. Where the default branch was renamed meanwhile, or
/// the planned branch deleted, it is the present default branch, if that has the commit that the
/// work began from: that of an earlier run, where this one went on with its unfinished work.
pub(super) async fn branch(
    run: &mut Run,
    forge: &Arc<dyn Forge>,
    item: &Item,
    base: &Base,
) -> Result<String, Interruption> {
    let planned = &base.branch;
    let present = item.default_branch.as_ref().filter(|present| *present != planned);
    let Some(present) = present else {
        return Ok(planned.clone());
    };
    let remote = source::home(&run.reporter, item).await?;
    let mirror = fetching::fetch(&run.claim, &remote).await?;
    if mirror.branch(planned).await?.is_some() {
        return Ok(planned.clone());
    }
    if let Some(tip) = mirror.branch(present).await?
        && mirror.descends(&tip, base.before_work()).await?
    {
        run.claim.warn(format!(
            "The branch `{planned}`, which the request was to be merged into, is not there any more: it goes to \
             `{present}`, the repository's default branch now."
        ));
        if let Some(base) = &mut run.claim.record.planned.base {
            base.branch.clone_from(present);
        }
        return Ok(present.clone());
    }
    // One that is open already stays where people put it.
    if forge
        .change_from(&run.claim.lease.task, &base.head_branch)
        .await?
        .is_some()
    {
        return Ok(planned.clone());
    }
    Err(Interruption::failed(format!(
        "the branch `{planned}`, which the request was to be merged into, does not exist any more, and the default \
         branch `{present}` does not have the commit that the work began from; make `{planned}` the default branch \
         again, or have the work begin anew from `{present}`"
    )))
}
