//! The bell that webhooks ring: forges are looked at now instead of at the next look.
//!
//! Looking stays the truth: what a delivery says is not believed, and one that is lost or forged
//! makes a look late or needless. While deliveries come, looks that nobody rang for are rarer.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

/// Deliveries are taken to come as long as the last was not longer ago.
const TRUST: Duration = Duration::from_mins(30);
/// How many times longer the pause between two looks is then.
const RARER: u32 = 5;
/// Shortest time between two looks, however often it rings.
pub(super) const BREATH: Duration = Duration::from_secs(1);

/// The bell.
pub(super) struct Bell {
    rung: watch::Sender<u64>,
    delivered: Mutex<Option<Instant>>,
}

impl Bell {
    pub(super) fn new() -> Self {
        Self {
            rung: watch::Sender::new(0),
            delivered: Mutex::default(),
        }
    }

    /// Has the forges looked at.
    pub(super) fn ring(&self) {
        self.rung.send_modify(|times| *times = times.wrapping_add(1));
    }

    /// Notes that webhooks arrive.
    pub(super) fn has_delivered(&self) {
        *self.delivered.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
    }

    /// Returns what hears it ring from now on.
    pub(super) fn ear(&self) -> watch::Receiver<u64> {
        let mut ear = self.rung.subscribe();
        ear.mark_unchanged();
        ear
    }

    /// Returns the pause until the next look that nobody rings for. After a look that somebody rang
    /// for it is the usual one: what the delivery was about may show a moment later.
    pub(super) fn pause(&self, usual: Duration, was_rung: bool) -> Duration {
        let delivered = *self.delivered.lock().unwrap_or_else(PoisonError::into_inner);
        let is_trusted = delivered.is_some_and(|at| at.elapsed() < TRUST);
        if is_trusted && !was_rung { usual * RARER } else { usual }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_rarer_while_deliveries_come_but_not_after_one() {
        let (bell, usual) = (Bell::new(), Duration::from_mins(1));
        assert_eq!(bell.pause(usual, false), usual);
        bell.has_delivered();
        assert_eq!(bell.pause(usual, false), usual * RARER);
        assert_eq!(bell.pause(usual, true), usual);
        *bell.delivered.lock().unwrap() = Instant::now().checked_sub(TRUST);
        assert_eq!(bell.pause(usual, false), usual, "they take over when deliveries stop");
    }
}
