//! For how long it is tried to bring the work of a run that ends.

use chrono::{DateTime, TimeDelta, Utc};

use crate::agent::claim::Claim;
use crate::agent::record::Parked;
use crate::agent::record::sections::WaitingRecord;
use crate::agent::stages::rescue::obstacle::Obstacle;
use crate::plain::counted;

/// Returns why something is given up that has been tried since then, once that was for long enough.
pub(crate) fn given_up(claim: &Claim, since: DateTime<Utc>, now: DateTime<Utc>, reason: &str) -> Option<String> {
    let hours = claim.services.settings.steering.give_up_hours;
    is_over(hours, since, now).then(|| tried_for_long(claim, reason))
}

fn tried_for_long(claim: &Claim, reason: &str) -> String {
    let tried = counted(claim.services.settings.steering.give_up_hours, "hour");
    format!("{reason}; it was tried again and again for {tried} (steering.give_up_hours)")
}

fn is_over(hours: u32, since: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    now - since >= TimeDelta::hours(i64::from(hours))
}

/// An attempt to bring the work of a run that ends. Whether another one follows is decided when it
/// begins: decided later, it might leave out what the last one does, and still be the last one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    Followed,
    Last,
}

impl Attempt {
    /// Returns the attempt that begins now. A local task has none that follows: it ends with the
    /// command that started it.
    pub(super) fn begin(claim: &Claim) -> Self {
        if claim.record.request.local.is_some() {
            return Self::Last;
        }
        let hours = claim.services.settings.steering.give_up_hours;
        Self::begin_at(&claim.record.waiting, hours, Utc::now())
    }

    fn begin_at(waiting: &WaitingRecord, give_up_hours: u32, now: DateTime<Utc>) -> Self {
        if is_over(give_up_hours, waiting.failing_since(now), now) {
            Self::Last
        } else {
            Self::Followed
        }
    }

    /// Tells whether an obstacle may be gone at another attempt, and one follows.
    pub(super) fn is_followed_after(self, obstacle: &Obstacle) -> bool {
        matches!(obstacle, Obstacle::Passes { .. }) && self == Self::Followed
    }

    /// Returns when it is tried again to bring the work, not before `until`; once that was tried
    /// for long enough, the reason for which it was given up.
    pub(super) fn next(self, claim: &mut Claim, until: DateTime<Utc>, reason: &str) -> Result<Parked, String> {
        if self == Self::Last {
            return Err(tried_for_long(claim, reason));
        }
        let reason = format!("the work of the run cannot be brought here yet: {reason}");
        Ok(Parked {
            until: claim.record.waiting.end_later(Utc::now(), until),
            reason: claim.services.redactor.clean(&reason).into_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_an_attempt_is_the_last_is_told_by_its_beginning() {
        let at = |minutes| DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes);
        let day = 24 * 60;
        let mut waiting = WaitingRecord::default();
        let begin_at = |waiting: &WaitingRecord, minutes| Attempt::begin_at(waiting, 24, at(minutes));
        assert_eq!(begin_at(&waiting, 0), Attempt::Followed);
        waiting.end_later(at(0), at(day - 1));
        let crossing = begin_at(&waiting, day - 1);
        assert_eq!(crossing, Attempt::Followed);
        waiting.end_later(at(day + 2), at(day + 2));
        let last = begin_at(&waiting, day + 4);
        assert_eq!(last, Attempt::Last);

        let passes = Obstacle::passes("git does not answer");
        let follows = [crossing, last].map(|attempt| attempt.is_followed_after(&passes));
        assert_eq!(follows, [true, false]);
        assert!(!crossing.is_followed_after(&Obstacle::Stays("it was refused".to_owned())));
    }
}
