//! What came of the searches of each forge, so that whoever watches this process sees that one is
//! not read any more.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use chrono::{DateTime, Utc};

use crate::task::id::HostName;

/// The searches of one forge by this process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Searches {
    /// Searches in which all was read, and all that was found was dealt with.
    pub good: u64,
    /// Searches in which something could not be read or dealt with; the next one tries it again.
    pub failed: u64,
    /// Time at which the last good one ended.
    pub last_good: Option<DateTime<Utc>>,
}

/// Counts the searches of all forges.
#[derive(Default)]
pub(in crate::service) struct SearchMeter {
    searches: Mutex<BTreeMap<HostName, Searches>>,
}

impl SearchMeter {
    /// Counts a search of a forge that ended now, with so many faults.
    pub(in crate::service) fn ended(&self, forge: &HostName, faults: usize) {
        let mut all = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        let searches = all.entry(forge.clone()).or_default();
        if faults > 0 {
            searches.failed += 1;
            return;
        }
        searches.good += 1;
        searches.last_good = Some(Utc::now());
    }

    /// Returns the searches of a forge so far.
    pub(in crate::service) fn of(&self, forge: &HostName) -> Searches {
        let all = self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        all.get(forge).copied().unwrap_or_default()
    }
}
