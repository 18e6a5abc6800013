//! The second stage: prepares the environment, the project and the tools.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::approval::plan_question;
use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;
use crate::agent::workspace::open;
use crate::agent::workspace::set_up;
use crate::task::state::Signal;

/// Opens the workspace and sets the project up as planned.
pub(crate) async fn prepare(run: &mut Run) -> Result<Signal, Interruption> {
    if plan_question::needs_approval(run).await? {
        return Ok(Signal::ApprovalNeeded);
    }
    run.inbox.listen_when_due().await;
    run.reporter.post_progress(&mut run.claim).await?;
    open::ensure_open(run).await?;
    if std::mem::take(&mut run.claim.record.prepared.is_repeated) {
        // Set up as the container that it replaces, and reported to the model as that.
        open::note_container(run);
        return Ok(Signal::Finished);
    }
    let is_set_up = run.workspace.opened()?.project.set_up().is_some();
    run.claim.record.prepared.setup = if is_set_up {
        run.workspace.opened()?.project.end_set_up().await?;
        set_up::done_before(&run.claim)
    } else {
        let opened = run.workspace.opened()?;
        let (workspace, toolbox) = (Arc::clone(&opened.project), Arc::clone(&opened.toolbox));
        let set_up = set_up::set_up(run, &workspace, &toolbox).await?;
        let took = Duration::from_millis(run.claim.record.prepared.set_up_milliseconds);
        let worth_keeping = Duration::from_secs(run.claim.services.containers.config.snapshots.after_seconds);
        if set_up.is_whole && took >= worth_keeping {
            open::keep_set_up(run).await;
        }
        set_up.text
    };
    open::note_container(run);
    Ok(Signal::Finished)
}
