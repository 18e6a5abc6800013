//! The second stage: environment, project and tools are made ready.

use std::sync::Arc;
use std::time::Duration;

use crate::agent::record::interruption::Setback;
use crate::agent::run::Run;
use crate::agent::workspace::open;
use crate::agent::workspace::set_up;
use crate::task::state::Signal;

/// Leaves an open desk with the project set up as the plan says.
pub(crate) async fn prepare(run: &mut Run) -> Result<Signal, Setback> {
    run.inbox.listen_when_due().await;
    run.reporter.show_progress(&mut run.claim).await?;
    let is_set_up = open::open_desk(run).await?.workspace.set_up().is_some();
    run.claim.record.setup = if is_set_up {
        open::open_desk(run).await?.workspace.end_set_up().await?;
        set_up::done_before(&run.claim)
    } else {
        let desk = open::open_desk(run).await?;
        let (workspace, toolbox) = (Arc::clone(&desk.workspace), Arc::clone(&desk.toolbox));
        let set_up = set_up::set_up(run, &workspace, &toolbox).await?;
        let took = Duration::from_millis(run.claim.record.set_up_milliseconds);
        let worth_keeping = Duration::from_secs(run.claim.services.containers.config.snapshots.after_seconds);
        if set_up.is_whole && took >= worth_keeping {
            open::keep_set_up(run).await;
        }
        set_up.text
    };
    open::note_container(run);
    Ok(Signal::Finished)
}
