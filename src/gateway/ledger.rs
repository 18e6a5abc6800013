//! What was refused in a run: for the journal, for the model, and for people.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

use crate::egress::Refusal;

/// Most destinations that are kept. Whoever asks for more has been told often enough.
const MOST: usize = 100;

/// The refusals of one run, each once.
pub struct Ledger {
    pages: Mutex<Pages>,
    /// Told of each destination the first time.
    note: Box<dyn Fn(&Refusal) + Send + Sync>,
}

#[derive(Default)]
struct Pages {
    all: BTreeSet<Refusal>,
    /// Refused since somebody looked last, again or for the first time.
    recent: BTreeSet<Refusal>,
}

impl Ledger {
    /// Begins with what an earlier process saw, of which nobody is told again.
    pub fn new(known: impl IntoIterator<Item = Refusal>, note: impl Fn(&Refusal) + Send + Sync + 'static) -> Self {
        Self {
            pages: Mutex::new(Pages {
                all: known.into_iter().collect(),
                recent: BTreeSet::new(),
            }),
            note: Box::new(note),
        }
    }

    pub(super) fn add(&self, refusal: &Refusal) {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = pages.all.contains(refusal);
        if !is_known && pages.all.len() >= MOST {
            return;
        }
        pages.recent.insert(refusal.clone());
        if !is_known {
            pages.all.insert(refusal.clone());
            (self.note)(refusal);
        }
    }

    /// Returns everything that was refused.
    pub fn all(&self) -> BTreeSet<Refusal> {
        let pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        pages.all.clone()
    }

    /// Takes out what was refused since this was last called.
    pub fn take_recent(&self) -> BTreeSet<Refusal> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut pages.recent)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::egress::{Destination, Policy};

    fn refusal(number: usize) -> Refusal {
        let destination = Destination::parse(&format!("host-{number}.example:443"), None).unwrap();
        Policy::default().judge(destination).unwrap_err()
    }

    #[test]
    fn each_is_noted_once_and_told_as_often_as_it_happens() {
        let noted = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&noted);
        let ledger = Ledger::new([refusal(0)], move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        for _ in 0..2 {
            ledger.add(&refusal(0));
            ledger.add(&refusal(1));
            ledger.add(&refusal(1));
            assert_eq!(ledger.take_recent(), BTreeSet::from([refusal(0), refusal(1)]));
        }
        assert_eq!(noted.load(Ordering::Relaxed), 1);
        for number in 0..1_000 {
            ledger.add(&refusal(number));
        }
        assert_eq!(noted.load(Ordering::Relaxed), MOST - 1);
        assert_eq!(ledger.take_recent().len(), MOST);
    }
}
