//! The leases that tasks of this process hold.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

/// The tokens of living leases. Shared with each [`Holding`], which outlives the store without
/// keeping it open.
#[derive(Debug, Clone, Default)]
pub(in crate::store) struct Held(Arc<Mutex<HashSet<Uuid>>>);

/// One entry of [`Held`], which is removed when this is dropped, so that a panicked task frees its
/// run.
#[derive(Debug)]
pub(in crate::store) struct Holding {
    pub(in crate::store) token: Uuid,
    held: Held,
}

impl Held {
    /// Adds a new lease before it is written: a claim in another task must not take it for
    /// abandoned.
    pub(in crate::store) fn take_up(&self) -> Holding {
        let token = Uuid::new_v4();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(token);
        Holding {
            token,
            held: self.clone(),
        }
    }

    pub(in crate::store) fn contains(&self, token: &Uuid) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(token)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.held
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.token);
    }
}
