//! What follows on a pull/merge request of this program's own: rounds of work on what reviewers and
//! checks say.
//!
//! Plain data, and the decision what to do next. Asking the forge and beginning a run is for
//! `service::following`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::forge::CommentKey;
use crate::forge::watched::FailedCheck;
use crate::task::id::TaskId;

/// What happens after a pull/merge request was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FollowUp {
    /// Works on what people who may write to the repository say of the pull/merge request, and on
    /// checks that fail.
    pub enabled: bool,
    /// How long the reviewers must have been silent before the work on their comments begins.
    pub debounce_seconds: u32,
    /// Most rounds of work on reviews; then a comment says that people are needed. 0 leaves reviews
    /// alone.
    pub max_review_rounds: u32,
    /// Most rounds of work on checks that fail. 0 leaves checks alone.
    pub max_ci_rounds: u32,
}

impl Default for FollowUp {
    fn default() -> Self {
        Self {
            enabled: true,
            debounce_seconds: 60,
            max_review_rounds: 3,
            max_ci_rounds: 2,
        }
    }
}

impl FollowUp {
    pub fn debounce(&self) -> TimeDelta {
        TimeDelta::seconds(self.debounce_seconds.into())
    }

    pub fn most(&self, kind: Kind) -> u32 {
        match kind {
            Kind::Review => self.max_review_rounds,
            Kind::Checks => self.max_ci_rounds,
        }
    }
}

/// What a round is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// People said something.
    Review,
    /// Checks of the head commit failed.
    Checks,
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Review => "review",
            Self::Checks => "checks",
        })
    }
}

/// A run that follows on its own pull/merge request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    pub kind: Kind,
    /// Counted from 1, each kind apart.
    pub number: u32,
    /// What it was begun for; what is said until it is planned comes along.
    pub comments: BTreeSet<CommentKey>,
    pub failed: Vec<FailedCheck>,
}

/// What is remembered of a pull/merge request between two looks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// The task it was opened for; while that one is worked on again, nobody else touches the
    /// branch.
    pub origin: TaskId,
    /// Rounds are counted from here: people asked for work then.
    pub since: DateTime<Utc>,
    /// Comments that need no attention any more, with the fingerprint of their text.
    pub heard: BTreeMap<CommentKey, Uuid>,
    /// How the change looked when its comments were last read.
    pub read: Option<Read>,
    pub checks: Option<ChecksOf>,
    /// Of these rounds the most were worked on, and people know it.
    pub told: BTreeSet<Kind>,
}

/// A look at the comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    pub updated_at: DateTime<Utc>,
    pub at: DateTime<Utc>,
    /// Somebody has spoken and may not have finished.
    pub is_waiting: bool,
}

/// What is known of the checks of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksOf {
    pub commit: String,
    pub first_seen: DateTime<Utc>,
    pub seen: DateTime<Utc>,
    /// Nothing more is to be learnt of them, unless somebody has one run again.
    pub is_settled: bool,
    /// The failed ones that a round was begun for.
    #[serde(default)]
    pub known: BTreeSet<String>,
    /// There are some.
    #[serde(default)]
    pub has_ended: bool,
}

/// For so long after its last change a pull/merge request is looked at each time: GitLab does not
/// move the time of the last change for each comment, and clocks differ.
const UNREST: TimeDelta = TimeDelta::minutes(5);
/// Longest time between two looks at checks that do not come to an end.
const LONGEST_PAUSE: TimeDelta = TimeDelta::minutes(10);
/// How often checks that came to an end are looked at again, because a person may have had one run
/// again: not before the shorter, ever more rarely, and after the longer in any case.
const RERUN_PAUSES: (TimeDelta, TimeDelta) = (TimeDelta::minutes(10), TimeDelta::hours(6));
/// After so long, what has no checks will not have any.
const CHECKS_BEGIN: TimeDelta = TimeDelta::hours(1);

impl Notes {
    pub fn new(origin: TaskId) -> Self {
        Self {
            origin,
            since: Utc::now(),
            heard: BTreeMap::new(),
            read: None,
            checks: None,
            told: BTreeSet::new(),
        }
    }

    /// Counts anew, because people asked for work again.
    pub fn begin_again(&mut self) {
        self.since = Utc::now();
        self.told.clear();
    }

    /// Tells whether there may be comments that were not read.
    pub fn may_have_news(&self, updated_at: DateTime<Utc>) -> bool {
        self.read
            .is_none_or(|read| read.is_waiting || read.updated_at != updated_at || read.at < updated_at + UNREST)
    }

    /// Tells whether the checks of `commit` are worth a look: ever more rarely the longer they
    /// take.
    pub fn may_have_checks(&self, commit: &str, now: DateTime<Utc>) -> bool {
        match &self.checks {
            Some(checks) if checks.commit == commit => {
                let (shortest, longest) = RERUN_PAUSES;
                let (lasted, since) = (checks.seen - checks.first_seen, now - checks.seen);
                match (checks.is_settled, checks.has_ended) {
                    (false, _) => since >= (lasted / 8).min(LONGEST_PAUSE),
                    (true, true) => since >= (lasted / 4).clamp(shortest, longest),
                    (true, false) => false,
                }
            }
            Some(_) | None => true,
        }
    }

    /// Returns the failed checks of `commit` that a round was begun for.
    pub fn known_failures(&self, commit: &str) -> BTreeSet<String> {
        let checks = self.checks.as_ref().filter(|checks| checks.commit == commit);
        checks.map(|checks| checks.known.clone()).unwrap_or_default()
    }

    /// Notes the failed checks that a round is begun for, of the commit that was looked at last.
    pub fn know_failures(&mut self, keys: impl IntoIterator<Item = String>) {
        if let Some(checks) = &mut self.checks {
            checks.known.extend(keys);
        }
    }

    /// Notes a look at the checks of `commit`.
    pub fn saw_checks(&mut self, commit: &str, now: DateTime<Utc>, outcome: Seen) {
        let first_seen = match &self.checks {
            Some(checks) if checks.commit == commit => checks.first_seen,
            Some(_) | None => now,
        };
        let known = self.known_failures(commit);
        self.checks = Some(ChecksOf {
            known,
            has_ended: outcome == Seen::End,
            commit: commit.to_owned(),
            first_seen,
            seen: now,
            is_settled: match outcome {
                Seen::Nothing => now - first_seen >= CHECKS_BEGIN,
                Seen::Running => false,
                Seen::End => true,
            },
        });
    }
}

/// How far the checks of a commit are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    Nothing,
    Running,
    End,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(minute: i64) -> DateTime<Utc> {
        DateTime::UNIX_EPOCH + TimeDelta::minutes(minute)
    }

    fn notes() -> Notes {
        Notes::new("github:acme/widgets#1".parse().unwrap())
    }

    #[test]
    fn comments_are_read_while_a_change_is_restless_and_not_again_when_it_is_quiet() {
        let mut notes = notes();
        assert!(notes.may_have_news(at(0)));
        let mut read = |minute, is_waiting| {
            notes.read = Some(Read {
                updated_at: at(10),
                at: at(minute),
                is_waiting,
            });
            notes.may_have_news(at(10))
        };
        assert_eq!([read(11, false), read(15, false), read(15, true)], [true, false, true]);
        assert!(notes.may_have_news(at(11)));
    }

    #[test]
    fn checks_are_looked_at_ever_more_rarely_and_hardly_after_their_end() {
        let mut notes = notes();
        let mut looks = 0;
        for minute in 0..300 {
            if notes.may_have_checks("a", at(minute)) {
                looks += 1;
                notes.saw_checks("a", at(minute), Seen::Running);
            }
        }
        assert!((40..80).contains(&looks), "{looks}");
        notes.saw_checks("a", at(300), Seen::End);
        notes.know_failures(["run-1".to_owned()]);
        assert!(notes.may_have_checks("b", at(301)));
        let mut looks = 0;
        for minute in 301..30 * 24 * 60 {
            if notes.may_have_checks("a", at(minute)) {
                looks += 1;
                notes.saw_checks("a", at(minute), Seen::End);
            }
        }
        assert!((100..140).contains(&looks), "{looks} looks in thirty days");
        assert_eq!(notes.known_failures("a"), BTreeSet::from(["run-1".to_owned()]));
        assert_eq!(notes.known_failures("b"), BTreeSet::new());
    }

    #[test]
    fn a_commit_without_checks_is_given_up_after_an_hour() {
        let mut notes = notes();
        notes.saw_checks("a", at(0), Seen::Nothing);
        assert!(notes.may_have_checks("a", at(59)));
        notes.saw_checks("a", at(60), Seen::Nothing);
        assert!(!notes.may_have_checks("a", at(100)));
    }
}
