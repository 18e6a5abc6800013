//! Attempts to end a run that failed, one after the other.

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};

/// An attempt that comes later than this after it was due shows that the program was not there.
const LATE: TimeDelta = TimeDelta::hours(1);

/// Attempts to bring the work of a run that ends, or to show its end, that failed one after the
/// other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedAttempts {
    /// The time of the first one; later by the time in which nobody tried.
    pub since: DateTime<Utc>,
    /// The time at which the next one is due.
    pub next: DateTime<Utc>,
}

impl FailedAttempts {
    /// Returns since when it was tried if another attempt is made now. Time in which the program
    /// was off after that attempt was due does not count: after a weekend the first failure would
    /// be the last. It is not begun anew, either: a program that a timer starts once a day would
    /// try for ever.
    pub fn since(self, now: DateTime<Utc>) -> DateTime<Utc> {
        let off = now - self.next;
        if off > LATE { self.since + off } else { self.since }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_the_program_was_off_does_not_count() {
        let at = |minutes| DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes);
        let failed = FailedAttempts {
            since: at(10),
            next: at(20),
        };
        assert_eq!(failed.since(at(15)), at(10), "somebody has it tried before");
        assert_eq!(failed.since(at(79)), at(10), "each round takes its time");
        let weekend = 60 * 60;
        assert_eq!(failed.since(at(20 + weekend)), at(10 + weekend));
    }
}
