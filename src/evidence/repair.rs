//! Decides how often the model may try to fix what a verification found.
//!
//! A failure is what one verification found. It stays the same as long as a check fails that failed
//! before, and it is another one when all of these pass and something else fails. Repairs end when
//! the result is the same twice, when one failure had its share of tries, or when there were too
//! many failures: each repair that breaks something else is a sign that none will help.

use serde::{Deserialize, Serialize};

use super::check::Checked;
use super::digest;

/// Limits of repairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Tries for one failure.
    pub max_rounds: u32,
    /// The failure with this number is no longer tried.
    pub max_failures: u32,
}

/// The repairs so far.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Repairs {
    /// Number of failures so far.
    pub failures: u32,
    /// Number of tries for the last of them.
    pub rounds: u32,
    /// The commands that failed in the last verification.
    commands: Vec<String>,
    /// Fingerprint of their output, without what differs from run to run.
    fingerprint: String,
    /// The reason why repairs ended.
    pub end: Option<End>,
}

/// The reason why repairs ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// A try did not change the failure.
    Unchanged,
    RoundsUsed,
    TooManyFailures,
}

/// The step after a verification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Repair,
    Ended,
}

impl Repairs {
    /// Counts the results of a verification and decides on the next step.
    pub fn judge(&mut self, checks: &[Checked], limits: Limits) -> Verdict {
        let open: Vec<&Checked> = checks.iter().filter(|check| check.is_open()).collect();
        if open.is_empty() {
            self.commands.clear();
            self.fingerprint.clear();
            self.end = None;
            return Verdict::Passed;
        }
        let fingerprint = digest::fingerprint(&open);
        let is_same = open.iter().any(|check| self.commands.contains(&check.command));
        let is_unchanged = is_same && fingerprint == self.fingerprint;
        if !is_same {
            self.failures += 1;
            self.rounds = 0;
        }
        self.commands = open.iter().map(|check| check.command.clone()).collect();
        self.fingerprint = fingerprint;
        self.end = if is_unchanged && self.rounds > 0 {
            Some(End::Unchanged)
        } else if self.rounds >= limits.max_rounds {
            Some(End::RoundsUsed)
        } else if self.failures >= limits.max_failures {
            Some(End::TooManyFailures)
        } else {
            None
        };
        if self.end.is_some() {
            return Verdict::Ended;
        }
        self.rounds += 1;
        Verdict::Repair
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: Limits = Limits {
        max_rounds: 2,
        max_failures: 3,
    };

    /// Checks named by letters; the text after each is its output.
    fn checks(said: &str) -> Vec<Checked> {
        said.split_whitespace()
            .map(|part| Checked {
                command: part[..1].to_owned(),
                exit_code: Some(i64::from(part.len() > 1)),
                tail: part[1..].to_owned(),
                ..Checked::default()
            })
            .collect()
    }

    /// Returns the verdict on each verification in turn, and how repairs ended.
    fn story(verifications: &[&str]) -> (Vec<Verdict>, Option<End>) {
        let mut repairs = Repairs::default();
        let verdicts = verifications.iter().map(|said| repairs.judge(&checks(said), LIMITS));
        (verdicts.collect(), repairs.end)
    }

    #[test]
    fn a_failure_is_tried_twice() {
        use Verdict::{Ended, Passed, Repair};
        for (verifications, verdicts, end) in [
            (&["a b"][..], &[Passed][..], None),
            (&["a b1", "a b"], &[Repair, Passed], None),
            (&["a1", "a2", "a3"], &[Repair, Repair, Ended], Some(End::RoundsUsed)),
            // The same twice: a third time would not help.
            (&["a1", "a1"], &[Repair, Ended], Some(End::Unchanged)),
            (&["a1", "a2", "a2"], &[Repair, Repair, Ended], Some(End::Unchanged)),
            // Another failure has tries of its own, but the third is not tried.
            (&["a1", "a2", "b1", "b2", "b3"], &[Repair; 4], Some(End::RoundsUsed)),
            (
                &["a1", "b1", "c1"],
                &[Repair, Repair, Ended],
                Some(End::TooManyFailures),
            ),
            // As long as one of the first checks fails, it is the same failure.
            (
                &["a1 b1", "b1 c1", "c2 d1"],
                &[Repair, Repair, Ended],
                Some(End::RoundsUsed),
            ),
        ] {
            let (found, why) = story(verifications);
            assert_eq!(found[..verdicts.len()], *verdicts, "{verifications:?}");
            assert_eq!(why, end, "{verifications:?}");
        }
    }

    proptest! {
        #[test]
        fn however_it_goes_the_tries_come_to_an_end(said in proptest::collection::vec("[a-c][0-3]?( [d-f][0-3]?)?", 0..40)) {
            let mut repairs = Repairs::default();
            let mut tries = 0;
            for said in &said {
                match repairs.judge(&checks(said), LIMITS) {
                    Verdict::Repair => tries += 1,
                    Verdict::Passed | Verdict::Ended => break,
                }
            }
            prop_assert!(tries <= (LIMITS.max_failures - 1) * LIMITS.max_rounds);
        }
    }
}
