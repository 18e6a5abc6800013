//! Claims an item on its forge before a run is written down for it, and before anything of that is
//! shown: of installations that look for the same label and share no store, one admits it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::AdmitError;
use crate::agent::claim::on_forge::{Asking, ClaimOnForge, Taken};
use crate::agent::record::sections::WrittenClaim;
use crate::forge::{Item, ItemEvent};
use crate::journal::fact::Fact;
use crate::service::Service;
use crate::service::forges::Connected;
use crate::task::id::TaskId;

/// Interval at which an item is asked for again that another installation has claimed.
const LOOK_AGAIN: Duration = Duration::from_mins(1);
/// Items that are kept in mind at once.
const MOST: usize = 1000;

/// Items that other installations have claimed, and when each was asked for.
#[derive(Default)]
pub(in crate::service) struct LeftToOthers {
    asked: Mutex<HashMap<TaskId, Instant>>,
}

impl LeftToOthers {
    fn was_just_asked(&self, task: &TaskId) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.get(task).is_some_and(|at| at.elapsed() < LOOK_AGAIN)
    }

    /// Returns whether it is the first time.
    fn note(&self, task: &TaskId) -> bool {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= MOST {
            asked.clear();
        }
        asked.insert(task.clone(), Instant::now()).is_none()
    }

    fn forget(&self, task: &TaskId) {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        asked.remove(task);
    }
}

/// Whose an item is.
pub(super) enum Entrance {
    /// This installation's.
    Open(Box<Entry>),
    /// Another installation's, until it is done with it or silent.
    Held,
    /// Nobody's any more: another installation has done what was asked for.
    Served,
}

/// An item that a run may be written down for.
pub(super) struct Entry {
    /// The claim that was written for it; none where a run of this installation has one, or the
    /// forge takes none.
    pub(super) claimed: Option<WrittenClaim>,
    on_forge: Option<ClaimOnForge>,
}

impl Entry {
    /// Ends the claim, because no run is written down.
    pub(super) async fn give_back(&self) {
        if let Some(on_forge) = &self.on_forge {
            on_forge.end().await;
        }
    }
}

impl Service {
    /// Claims an item on which `trigger` asked for work.
    pub(super) async fn claim_item(
        &self,
        connected: &Connected,
        task: &TaskId,
        trigger: &ItemEvent,
    ) -> Result<Entrance, AdmitError> {
        if self.left.was_just_asked(task) {
            return Ok(Entrance::Held);
        }
        let asking = Asking {
            task: task.clone(),
            run: None,
            asked_at: Some(trigger.at),
        };
        let (forge, labels) = (Arc::clone(&connected.forge), connected.labels.clone());
        let Some(on_forge) = ClaimOnForge::new(Arc::clone(&self.services), forge, labels, asking) else {
            return Ok(Entrance::Open(Box::new(Entry {
                claimed: None,
                on_forge: None,
            })));
        };
        let claimed = match on_forge.take(None).await? {
            Taken::Claimed(written) => Some(written),
            Taken::Own | Taken::Unguarded => None,
            Taken::Held { by, until, .. } => {
                if self.left.note(task) {
                    let text = format!(
                        "another installation ({by}) has claimed the item on the forge until {}; it is left to that one",
                        until.format("%H:%M:%S UTC")
                    );
                    self.record(task, None, Fact::Warned { text });
                }
                return Ok(Entrance::Held);
            }
            Taken::Served { .. } => return Ok(Entrance::Served),
        };
        self.left.forget(task);
        let on_forge = claimed.is_some().then_some(on_forge);
        Ok(Entrance::Open(Box::new(Entry { claimed, on_forge })))
    }
}

/// Tells whether the item still asks for work. Another installation may have been faster from
/// beginning to end, and lists may be older than the labels.
pub(in crate::service) fn still_asks(connected: &Connected, item: &Item) -> bool {
    let trigger = connected.labels.trigger.to_lowercase();
    item.is_open && item.labels.iter().any(|label| label.to_lowercase() == trigger)
}
