//! Closes what is open for a run in this process.

use crate::agent::run::Run;
use crate::agent::workspace::open;
use crate::agent::workspace::source;
use crate::journal::fact::Fact;
use crate::task::state::State;

/// Closes what is open and removes the container; also the container that an earlier process left,
/// when the run is over and nobody needs it.
pub(crate) async fn leave(run: &mut Run) {
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
