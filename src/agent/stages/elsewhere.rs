//! Ends and waits that another installation has come before.

use std::time::Duration;

use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;

/// Longest time to make sure that the item is still the run's.
const CONFIRM_TIME: Duration = Duration::from_secs(20);

/// Replaces an end or a wait that would put a label beside that of another installation, which
/// finished the item meanwhile: the two labels would contradict each other.
pub(super) async fn unless_finished(run: &Run, interruption: Interruption) -> Interruption {
    let is_shown = match &interruption {
        Interruption::Failed(_)
        | Interruption::WorkspaceLost(_)
        | Interruption::NoNativeCalls(_)
        | Interruption::Stopped { .. }
        | Interruption::Postponed { .. }
        | Interruption::Paused { .. } => true,
        Interruption::Withdrawn { item_exists, .. } => *item_exists,
        Interruption::Cancelled
        | Interruption::FinishedElsewhere
        | Interruption::ClaimedElsewhere { .. }
        | Interruption::Disowned(_)
        | Interruption::Unsaved(_) => false,
    };
    if !is_shown {
        return interruption;
    }
    came_before(run).await.unwrap_or(interruption)
}

/// Returns what becomes of the run if another installation has claimed or finished the item.
pub(super) async fn came_before(run: &Run) -> Option<Interruption> {
    let confirmed = tokio::time::timeout(CONFIRM_TIME, run.claim.confirm_item()).await;
    if let Ok(Err(claimed_elsewhere)) = confirmed {
        return Some(claimed_elsewhere);
    }
    let is_finished = run.reporter.finds_it_finished(&run.claim).await;
    is_finished.then_some(Interruption::FinishedElsewhere)
}
