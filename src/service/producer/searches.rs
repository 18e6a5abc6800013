//! Counts the searches of each forge by their outcome, so that whoever watches this process sees
//! that one is not read any more.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};

use crate::task::id::HostName;

/// The searches of one forge by this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Searches {
    /// Searches in which all was read, and all that was found was dealt with.
    pub complete: u64,
    /// Searches that the forge answered, in which something could not be dealt with; the next one
    /// tries it again.
    pub incomplete: u64,
    /// Searches in which something could not be read from the forge.
    pub failed: u64,
    /// Time at which the last one ended that did not fail.
    pub last_good: Option<DateTime<Utc>>,
}

/// The outcome of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::service) enum Searched {
    Complete,
    Incomplete,
    Failed,
}

/// Counts the searches of all forges.
#[derive(Default)]
pub(in crate::service) struct SearchMeter {
    searches: Mutex<BTreeMap<HostName, Searches>>,
}

impl SearchMeter {
    /// Counts a search of a forge that ended now.
    pub(in crate::service) fn ended(&self, forge: &HostName, outcome: Searched) {
        let mut all = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        let searches = all.entry(forge.clone()).or_default();
        match outcome {
            Searched::Complete => searches.complete += 1,
            Searched::Incomplete => searches.incomplete += 1,
            Searched::Failed => {
                searches.failed += 1;
                return;
            }
        }
        searches.last_good = Some(Utc::now());
    }

    /// Returns the searches of a forge so far.
    pub(in crate::service) fn of(&self, forge: &HostName) -> Searches {
        let all = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(forge).copied().unwrap_or_default()
    }
}
