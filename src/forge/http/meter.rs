//! Counts of the requests to a forge, and of those that it still takes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use http::HeaderMap;

/// Kinds of requests with a limit of their own that are remembered.
const MOST_KINDS: usize = 16;
/// The kind of a limit that the forge does not name.
const ONLY: &str = "all";

/// Counts the requests to a forge.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    sent: AtomicU64,
    left: Mutex<BTreeMap<String, u64>>,
}

/// The requests to a forge so far, and how many it still takes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traffic {
    /// HTTP requests that were sent, repeats included.
    pub requests: u64,
    /// Requests that the forge still takes until its limit is set anew, by their kind as it names
    /// it (`core`, `search`, `graphql`), as its last answers said.
    pub left: BTreeMap<String, u64>,
}

impl Meter {
    pub(crate) fn sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the limits that an answer tells.
    pub(crate) fn answered(&self, headers: &HeaderMap) {
        let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
        let left = text("x-ratelimit-remaining").or_else(|| text("ratelimit-remaining"));
        let Some(left) = left.and_then(|left| left.parse().ok()) else {
            return;
        };
        let kind = text("x-ratelimit-resource").unwrap_or(ONLY);
        let is_word = kind.len() <= 40 && kind.chars().all(|sign| sign.is_ascii_alphanumeric() || sign == '_');
        let mut known = self.left.lock().unwrap_or_else(PoisonError::into_inner);
        if is_word && (known.len() < MOST_KINDS || known.contains_key(kind)) {
            known.insert(kind.to_owned(), left);
        }
    }

    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            requests: self.sent.load(Ordering::Relaxed),
            left: self.left.lock().unwrap_or_else(PoisonError::into_inner).clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_those_of_the_last_answers_and_few_kinds() {
        let meter = Meter::default();
        let answered = |pairs: &[(&'static str, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in pairs {
                headers.insert(*name, value.parse().unwrap());
            }
            meter.sent();
            meter.answered(&headers);
        };
        answered(&[("x-ratelimit-remaining", "4999"), ("x-ratelimit-resource", "core")]);
        answered(&[("x-ratelimit-remaining", "4998"), ("x-ratelimit-resource", "core")]);
        answered(&[("ratelimit-remaining", "7")]);
        answered(&[("x-ratelimit-remaining", "many")]);
        answered(&[("x-ratelimit-remaining", "1"), ("x-ratelimit-resource", "a\"b")]);
        answered(&[]);
        let traffic = meter.traffic();
        assert_eq!(traffic.requests, 6);
        assert_eq!(traffic.left, [("all".to_owned(), 7), ("core".to_owned(), 4998)].into());
        for number in 0..100 {
            let kind = format!("kind{number}");
            answered(&[("x-ratelimit-remaining", "1"), ("x-ratelimit-resource", &kind)]);
        }
        assert_eq!(meter.traffic().left.len(), MOST_KINDS);
    }
}
