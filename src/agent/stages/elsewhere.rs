//! Ends that another installation has come before.

use std::time::Duration;

use crate::agent::record::interruption::Interruption;
use crate::agent::run::Run;

/// Longest time to make sure that the item is still the run's.
const CONFIRM_TIME: Duration = Duration::from_secs(20);

/// Replaces an end that would put a label beside that of another installation, which finished the
/// item meanwhile: two final labels contradict each other.
pub(super) async fn unless_finished(run: &Run, interruption: Interruption) -> Interruption {
    let is_shown = match &interruption {
        Interruption::Failed(_)
        | Interruption::WorkspaceLost(_)
        | Interruption::NoNativeCalls(_)
        | Interruption::Stopped { .. } => true,
        Interruption::Withdrawn { item_exists, .. } => *item_exists,
        Interruption::Cancelled
        | Interruption::Postponed { .. }
        | Interruption::FinishedElsewhere
        | Interruption::ClaimedElsewhere { .. }
        | Interruption::Paused { .. }
        | Interruption::Disowned(_)
        | Interruption::Unsaved(_) => false,
    };
    if !is_shown {
        return interruption;
    }
    let confirmed = tokio::time::timeout(CONFIRM_TIME, run.claim.confirm_item()).await;
    if let Ok(Err(claimed_elsewhere)) = confirmed {
        return claimed_elsewhere;
    }
    if run.reporter.finds_it_finished(&run.claim).await {
        return Interruption::FinishedElsewhere;
    }
    interruption
}
