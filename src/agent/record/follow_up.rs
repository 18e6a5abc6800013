//! Follow-up on the program's own pull/merge requests: rounds of work on reviews and failed checks.
//!
//! Plain data, and the decision when to poll. `service::producer::following` asks the forge and
//! starts runs.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::forge::CommentKey;
use crate::forge::item::checks::FailedCheck;
use crate::task::id::TaskId;

/// Configuration of the work on a pull/merge request after it was opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct FollowUp {
    /// Whether to work on failed checks, and on comments by people who may write to the repository.
    pub enabled: bool,
    /// Seconds without a new comment before the work on comments begins.
    pub debounce_seconds: u32,
    /// Maximum rounds of work on reviews; then a comment says that people are needed. 0 ignores
    /// reviews.
    pub max_review_rounds: u32,
    /// Maximum rounds of work on failed checks. 0 ignores checks.
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

/// The reason for a round of follow-up work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// People commented.
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

/// One run of follow-up work on an existing pull/merge request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    pub kind: Kind,
    /// Number of the round among those of its kind, from 1.
    pub number: u32,
    /// Comments that started the round; those that arrive before the worker's first reply are
    /// added.
    pub comments: BTreeSet<CommentKey>,
    pub failed: Vec<FailedCheck>,
}

/// State of a watched pull/merge request, kept from one poll to the next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    /// The task that the request was opened for; while that one is worked on, no round may touch
    /// the branch.
    pub origin: TaskId,
    /// Time of people's last request for work; rounds are counted from it.
    pub since: DateTime<Utc>,
    /// Comments that need no further attention, with the fingerprint of their text.
    pub heard: BTreeMap<CommentKey, Uuid>,
    /// State of the request when its comments were last read.
    pub read: Option<Read>,
    pub checks: Option<ChecksOf>,
    /// Kinds whose maximum of rounds was reached and announced.
    pub told: BTreeSet<Kind>,
    /// Rule that restricts the work on the request to local models, because the work that opened it
    /// was restricted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local_only: Option<String>,
    /// The model that was named for the work that opened it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// One reading of the comments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Read {
    pub updated_at: DateTime<Utc>,
    pub at: DateTime<Utc>,
    /// Whether a person commented so recently that more may follow.
    pub is_waiting: bool,
}

/// State of a commit's checks at the last poll.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChecksOf {
    pub commit: String,
    pub first_seen: DateTime<Utc>,
    pub seen: DateTime<Utc>,
    /// Whether no further result is expected, unless a person reruns a check.
    pub is_settled: bool,
    /// Failed checks that a round was started for.
    #[serde(default)]
    pub known: BTreeSet<String>,
    /// Whether the checks had finished at the last poll; false where the commit had none.
    #[serde(default)]
    pub has_ended: bool,
}

/// Time after its last change in which a request is read on each poll: on GitLab not every comment
/// updates the time of the last change, and clocks differ.
const UNREST: TimeDelta = TimeDelta::minutes(5);
/// Longest interval between two polls of checks that do not finish.
const LONGEST_PAUSE: TimeDelta = TimeDelta::minutes(10);
/// Bounds of the growing interval at which finished checks are polled again, in case a person
/// reruns one.
const RERUN_PAUSES: (TimeDelta, TimeDelta) = (TimeDelta::minutes(10), TimeDelta::hours(6));
/// Time after which a commit without checks is taken to have none.
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
            local_only: None,
            model: None,
        }
    }

    /// Records how the work was restricted that the request shows, and the model that was named for
    /// it. A restriction is never withdrawn: what was made under it stays in the request.
    pub fn made_under(&mut self, local_only: Option<&str>, model: Option<&str>) {
        if self.local_only.is_none() {
            self.local_only = local_only.map(str::to_owned);
        }
        if let Some(model) = model {
            self.model = Some(model.to_owned());
        }
    }

    /// Restarts the count of rounds, because people asked for work again.
    pub fn begin_again(&mut self) {
        self.since = Utc::now();
        self.told.clear();
    }

    /// Returns true if there may be unread comments.
    pub fn may_have_news(&self, updated_at: DateTime<Utc>) -> bool {
        self.read
            .is_none_or(|read| read.is_waiting || read.updated_at != updated_at || read.at < updated_at + UNREST)
    }

    /// Returns true if it is time to poll the checks of `commit`; the interval grows with their
    /// duration.
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

    /// Returns the failed checks of `commit` that a round was started for.
    pub fn known_failures(&self, commit: &str) -> BTreeSet<String> {
        let checks = self.checks.as_ref().filter(|checks| checks.commit == commit);
        checks.map(|checks| checks.known.clone()).unwrap_or_default()
    }

    /// Records failed checks that a round is started for, of the commit that was polled last.
    pub fn know_failures(&mut self, keys: impl IntoIterator<Item = String>) {
        if let Some(checks) = &mut self.checks {
            checks.known.extend(keys);
        }
    }

    /// Records the outcome of polling the checks of `commit`.
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

/// Progress of a commit's checks.
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
    fn a_restriction_outlives_later_work_and_the_newest_named_model_counts() {
        let mut notes = notes();
        notes.made_under(Some("a rule"), Some("near"));
        notes.made_under(None, None);
        notes.made_under(Some("another rule"), Some("other"));
        assert_eq!(
            (notes.local_only.as_deref(), notes.model.as_deref()),
            (Some("a rule"), Some("other"))
        );
        let mut saved = serde_json::to_value(&notes).unwrap();
        assert_eq!(serde_json::from_value::<Notes>(saved.clone()).unwrap(), notes);
        // As an earlier version wrote them.
        let fields = saved.as_object_mut().unwrap();
        fields.retain(|name, _| name != "local_only" && name != "model");
        assert_eq!(serde_json::from_value::<Notes>(saved).unwrap().local_only, None);
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
