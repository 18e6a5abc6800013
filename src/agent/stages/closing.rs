//! Releases what a run has open in this process.

use crate::agent::run::Run;
use crate::agent::stages::planning::kept_plans;
use crate::agent::workspace::open;
use crate::agent::workspace::source;
use crate::journal::fact::Fact;
use crate::task::state::State;

/// Closes everything and removes the container; at the end of the run also one left by an earlier
/// process.
pub(crate) async fn leave(run: &mut Run) {
    kept_plans::settle(&run.claim).await;
    if run.claim.state == State::Done {
        source::forget_commits(run).await;
    }
    open::discard_early(run).await;
    if let Some(opened) = run.workspace.open.take() {
        run.dialogue.chat = None;
        let container = opened.clear().await;
        run.claim.note(Fact::EnvironmentRemoved { container });
    }
    if run.claim.was_taken_up && run.claim.state.is_final() {
        open::remove_left_container(&run.claim).await;
    }
    run.workspace.ledger.close();
    if run.claim.state.is_final() {
        source::leave_fork(run).await;
    }
}
