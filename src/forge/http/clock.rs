//! The forge's clock, as the `Date` of its answers tells it.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use chrono::{DateTime, TimeDelta, Utc};
use http::HeaderMap;
use http::header::{AGE, DATE};

/// The newest reading of the forge's clock, and when it was heard.
#[derive(Debug, Default)]
pub struct Clock {
    heard: Mutex<Option<(DateTime<Utc>, Instant)>>,
}

impl Clock {
    /// Notes the time that an answer tells. What a cache on the way gave is older than it says.
    pub(crate) fn hear(&self, headers: &HeaderMap) {
        let date = headers.get(DATE).and_then(|date| date.to_str().ok());
        let date = date.and_then(|date| DateTime::parse_from_rfc2822(date).ok());
        if let Some(date) = date.filter(|_| !headers.contains_key(AGE)) {
            *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some((date.to_utc(), Instant::now()));
        }
    }

    /// Returns the time on the forge's clock; `None` if it has not told yet. Setting this machine's
    /// clock does not change it.
    pub(crate) fn now(&self) -> Option<DateTime<Utc>> {
        let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let (date, at) = heard?;
        date.checked_add_signed(TimeDelta::from_std(at.elapsed()).ok()?)
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
}
