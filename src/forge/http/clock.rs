//! The forge's clock, as the `Date` of its answers tells it.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderMap;
use http::header::{AGE, DATE};

/// Most time that `Instant` may have left out, as it does while the machine sleeps.
const LONGEST_SLEEP: TimeDelta = TimeDelta::seconds(30);

/// The newest reading of the forge's clock.
#[derive(Debug, Default)]
pub struct Clock {
    heard: Mutex<Option<Heard>>,
}

#[derive(Debug, Clone, Copy)]
struct Heard {
    date: DateTime<Utc>,
    at: Instant,
    /// The same moment on this machine's clock.
    at_here: DateTime<Utc>,
}

impl Clock {
    /// Notes the time that an answer tells. What a cache on the way gave is older than it says.
    pub(crate) fn hear(&self, headers: &HeaderMap) {
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        if let Some(date) = date.filter(|_| !headers.contains_key(AGE)) {
            *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(Heard {
                date: date.to_utc(),
                at: Instant::now(),
                at_here: Utc::now(),
            });
        }
    }

    /// Returns the time on the forge's clock; `None` if it has not told yet, or not since this
    /// machine slept: a claim that ran out meanwhile would seem to hold. Setting this machine's
    /// clock does not change the time; at most the forge has to tell it again.
    pub(crate) fn now(&self) -> Option<DateTime<Utc>> {
        let heard = (*self.heard.lock().unwrap_or_else(PoisonError::into_inner))?;
        let passed = TimeDelta::from_std(heard.at.elapsed()).ok()?;
        if Utc::now() - heard.at_here > passed + LONGEST_SLEEP {
            return None;
        }
        heard.date.checked_add_signed(passed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(headers: &[(http::HeaderName, &str)]) -> HeaderMap {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), value.parse().unwrap()));
        headers.collect()
    }

    #[test]
    fn the_time_is_that_of_the_last_answer_that_came_from_the_forge_itself() {
        let clock = Clock::default();
        assert_eq!(clock.now(), None);
        clock.hear(&said(&[(DATE, "yesterday")]));
        assert_eq!(clock.now(), None);
        clock.hear(&said(&[(DATE, "Sun, 06 Nov 1994 08:49:37 GMT")]));
        clock.hear(&said(&[(DATE, "Sun, 06 Nov 1994 07:00:00 GMT"), (AGE, "6577")]));
        clock.hear(&said(&[]));
        let now = clock.now().unwrap();
        let after = now - "1994-11-06T08:49:37Z".parse::<DateTime<Utc>>().unwrap();
        assert!((TimeDelta::zero()..TimeDelta::minutes(1)).contains(&after), "{now}");
    }

    #[test]
    fn after_a_sleep_of_this_machine_the_forge_has_to_tell_the_time_again() {
        let clock = Clock::default();
        let date = said(&[(DATE, "Sun, 06 Nov 1994 08:49:37 GMT")]);
        clock.hear(&date);
        let move_clock = |hours| {
            let mut heard = clock.heard.lock().unwrap();
            heard.as_mut().unwrap().at_here += TimeDelta::hours(hours);
        };
        // Set back, as if it had been an hour ahead.
        move_clock(1);
        assert!(clock.now().is_some());
        move_clock(-2);
        assert_eq!(clock.now(), None);
        clock.hear(&date);
        assert!(clock.now().is_some());
    }
}
