//! The verdict of a trial of the network policy, and how long it is believed.

use std::time::{Duration, Instant};

/// How long a verdict is believed.
const GOOD_FOR: Duration = Duration::from_hours(6);
const BAD_FOR: Duration = Duration::from_mins(5);

/// The verdict of one trial.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    at: Instant,
    /// The targets that were reached; empty if the policy holds.
    pub(super) reached: Vec<String>,
}

impl Verdict {
    pub(super) fn now(reached: Vec<String>) -> Self {
        Self {
            at: Instant::now(),
            reached,
        }
    }

    /// Returns true if it need not be tried again yet.
    pub(super) fn is_believed(&self) -> bool {
        let long = if self.reached.is_empty() { GOOD_FOR } else { BAD_FOR };
        self.at.elapsed() < long
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_is_tried_again_now_and_then() {
        let verdict = |age: Duration, reached: &[&str]| Verdict {
            at: Instant::now().checked_sub(age).unwrap(),
            reached: reached.iter().map(|word| (*word).to_owned()).collect(),
        };
        assert!(verdict(Duration::from_mins(6), &[]).is_believed());
        assert!(
            !verdict(Duration::from_mins(6), &["its node"]).is_believed(),
            "it may be mended by now"
        );
        assert!(verdict(Duration::from_mins(1), &["its node"]).is_believed());
    }
}
