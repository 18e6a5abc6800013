//! Facts that stay true for a while, so that they are not asked again within a run.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time for which facts are cached: long enough for a run of some turns, short enough for a renamed
/// default branch to be noticed within the hour.
const FRESH: Duration = Duration::from_mins(10);
const MOST: usize = 1000;

/// Facts by name, forgotten after ten minutes. Names are compared without regard to case, as both
/// forges do.
pub(crate) struct Cache<T> {
    facts: Mutex<HashMap<String, (Instant, Arc<T>)>>,
}

impl<T> Cache<T> {
    pub(crate) fn new() -> Self {
        Self {
            facts: Mutex::new(HashMap::new()),
        }
    }

    pub(crate) fn fact(&self, name: &str) -> Option<Arc<T>> {
        let facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let (learnt, fact) = facts.get(&name.to_lowercase())?;
        (learnt.elapsed() < FRESH).then(|| Arc::clone(fact))
    }

    pub(crate) fn learn(&self, name: &str, fact: T) -> Arc<T> {
        let fact = Arc::new(fact);
        let mut facts = self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        if facts.len() >= MOST {
            facts.clear();
        }
        facts.insert(name.to_lowercase(), (Instant::now(), Arc::clone(&fact)));
        fact
    }
}
