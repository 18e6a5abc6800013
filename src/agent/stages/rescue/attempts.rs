//! For how long it is tried to bring the work of a run that ends.

use chrono::{DateTime, TimeDelta, Utc};

use crate::agent::claim::Claim;
use crate::agent::record::Parked;
use crate::agent::stages::rescue::obstacle::Obstacle;
use crate::plain::counted;

/// Returns why something is given up that has been tried since then, once that was for long enough.
pub(crate) fn given_up(claim: &Claim, since: DateTime<Utc>, now: DateTime<Utc>, reason: &str) -> Option<String> {
    is_over(claim, since, now).then(|| {
        let tried = counted(claim.services.settings.steering.give_up_hours, "hour");
        format!("{reason}; it was tried again and again for {tried} (steering.give_up_hours)")
    })
}

fn is_over(claim: &Claim, since: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    let hours = claim.services.settings.steering.give_up_hours;
    now - since >= TimeDelta::hours(i64::from(hours))
}

/// Tells whether an attempt to bring the work that fails now is followed by another one. A local
/// task has none: it ends with the command that started it.
pub(super) fn may_follow(claim: &Claim) -> bool {
    let now = Utc::now();
    let since = claim.record.waiting.failing_since(now);
    claim.record.request.local.is_none() && !is_over(claim, since, now)
}

/// Tells whether an obstacle may be gone at another attempt, and one follows.
pub(super) fn is_followed(claim: &Claim, obstacle: &Obstacle) -> bool {
    matches!(obstacle, Obstacle::Passes { .. }) && may_follow(claim)
}

/// Returns when it is tried again to bring the work, not before `until`; once that was tried for
/// long enough, the reason for which it was given up.
pub(super) fn next(claim: &mut Claim, until: DateTime<Utc>, reason: &str) -> Result<Parked, String> {
    let now = Utc::now();
    let since = claim.record.waiting.failing_since(now);
    if let Some(given_up) = given_up(claim, since, now, reason) {
        return Err(given_up);
    }
    let reason = format!("the work of the run cannot be brought here yet: {reason}");
    Ok(Parked {
        until: claim.record.waiting.end_later(now, until),
        reason: claim.services.redactor.clean(&reason).into_string(),
    })
}
