//! Everything a run has produced so far: the document that is saved after every stage.

pub mod usage; // tokens by model and role
pub mod budget; // what a run may use, and what it has used
pub mod follow_up; // reviews and checks of the program's own pull/merge request
pub mod hold_reason; // why a result needs approval
pub mod vouched; // what the labeler has vouched for
pub mod message; // messages of people to a run
pub mod stop; // cancellation in two degrees
pub mod interruption; // why a stage ended without its result
pub mod outcome; // how the work on a run ended
pub mod sections; // the parts of a record
pub mod saved; // reads and writes saved records of every version
pub(crate) mod redaction; // takes secrets out of what is saved

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::agent::record::hold_reason::{HoldReason, Unlisted};
use crate::agent::record::message::{Order, OrderSource};
use crate::agent::record::sections::{
    DeliveryRecord, PlanningRecord, PreparationRecord, RequestRecord, ReviewRecord, ThreadRecord, VerificationRecord,
    WaitingRecord, WorkRecord,
};
use crate::agent::record::usage::ModelUsage;
use crate::approval::Question;
use crate::approval::extent::Extent;
use crate::approval::proposal::HeldPlan;
use crate::evidence::check::{Checked, Excuse};
use crate::forge::CommentKey;
use crate::llm::config::PriceList;
use crate::llm::config::model_config::OWN;
use crate::repository::CommitId;
use crate::secret::Redactor;

/// The saved state of a run, apart from its stage and its conversation.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    pub request: RequestRecord,
    pub planned: PlanningRecord,
    pub prepared: PreparationRecord,
    pub worked: WorkRecord,
    pub verified: VerificationRecord,
    pub reviewed: ReviewRecord,
    pub delivered: DeliveryRecord,
    pub waiting: WaitingRecord,
    pub thread: ThreadRecord,
    pub failure: Option<Failure>,
    /// Saved before it is shown on the item, which may have to wait for the forge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<EndWithoutFailure>,
}

impl Record {
    /// Returns the cost of the run so far in US dollars; `None` if no model has a price.
    pub fn cost(&self, prices: &PriceList) -> Option<f64> {
        let by_model = &self.worked.by_model;
        // Earlier versions knew one model, and counted only the sum.
        let mut before = self.worked.usage;
        for ModelUsage { usage, .. } in by_model {
            before = before.less(usage);
        }
        let counted = by_model.iter().map(|entry| (entry.model.as_str(), &entry.usage));
        prices.cost(counted.chain([(OWN, &before)]))
    }

    /// Returns true if no check and no review stands against the result and no test was deleted or
    /// skipped.
    pub fn is_verified(&self) -> bool {
        self.passes_checks() && !self.takes_tests_away() && self.reviewed.result_unready.is_none()
    }

    /// Returns true if every check passed, or failed for a reason outside the work.
    pub fn passes_checks(&self) -> bool {
        !self.verified.checks.iter().any(Checked::is_open)
    }

    /// Returns true if a check was run. One that could not be started tested nothing.
    pub fn is_checked(&self) -> bool {
        let did_run = |check: &Checked| check.excuse != Some(Excuse::DidNotStart);
        self.verified.checks.iter().any(did_run)
    }

    /// Returns true if tests were deleted or are no longer run.
    pub fn takes_tests_away(&self) -> bool {
        self.verified
            .findings
            .iter()
            .any(|finding| finding.kind.takes_tests_away())
    }

    /// Returns a branch that unfinished work was pushed to, unless people have the result.
    pub fn pushed(&self) -> Option<SavedWork> {
        if self.is_handed_over() {
            return None;
        }
        // A branch without a commit turned out to be of others.
        let mut branches = self.delivered.unfinished.iter().rev();
        let pushed = branches.find(|(_, commits)| !commits.is_empty());
        pushed.map(|(branch, _)| SavedWork::Branch(branch.clone()))
    }

    /// Records that the end of the run is decided, and the branch that has work of it by then: a
    /// later one may be noted by a push that fails.
    pub fn end(&mut self, now: DateTime<Utc>) {
        if self.waiting.ended_at.is_none() {
            self.delivered.pushed_before = self.pushed();
        }
        self.waiting.end(now);
    }

    /// Records where the work of the run that ends is, or that there is none to be brought. From
    /// the first time on, the attempts to show the end count for themselves.
    pub fn brought(&mut self, saved: Option<&SavedWork>) {
        let delivered = &mut self.delivered;
        if !delivered.is_brought || saved.is_some() {
            self.waiting.failing = None;
        }
        delivered.is_brought = true;
        delivered.rescued = saved.cloned();
    }

    /// Returns true if people have the result, and only have to be told so: nothing more is pushed,
    /// and what becomes of the item is no reason to end the run.
    pub fn is_handed_over(&self) -> bool {
        let delivered = &self.delivered;
        match (&delivered.head, &delivered.handed_over) {
            (Some(head), Some(result)) => head == result,
            // An earlier version noted the request alone.
            (Some(_), None) => delivered.change.is_some(),
            (None, _) => false,
        }
    }

    /// Returns the commit that has the result on its branch, once that is pushed.
    pub fn pushed_result(&self) -> Option<&CommitId> {
        let head = self.delivered.head.as_ref()?;
        let pushed = self.delivered.pushed.as_ref().filter(|pushed| pushed.result == *head);
        // An earlier version did not note it: most results are pushed as they are.
        Some(pushed.map_or(head, |pushed| &pushed.commit))
    }

    /// Returns the branch that is pushed; empty before there is one.
    pub fn head_branch(&self) -> &str {
        let base = self.planned.base.as_ref();
        base.map_or("", |base| base.head_branch.as_str())
    }

    /// Returns true if there is an accepted change to deliver, by this run or by an earlier one
    /// that was interrupted.
    pub fn has_changes(&self) -> bool {
        match (&self.planned.base, &self.delivered.head) {
            (Some(base), Some(head)) => base.holds_work || base.commit != *head,
            _ => false,
        }
    }
}

/// A wait that ends without action by people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    pub until: DateTime<Utc>,
    pub reason: String,
}

/// The reason why the run waits for people, and the location of its unfinished work.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Paused {
    pub by: PausedBy,
    pub at: DateTime<Utc>,
    /// Location of the unfinished work.
    #[serde(flatten)]
    pub saved: Option<SavedWork>,
}

/// A result with the commit that it was pushed as: another one with the same files where the forge
/// takes no forced push.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PushedResult {
    pub result: CommitId,
    pub commit: CommitId,
}

/// Location of the work of a run that did not deliver it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SavedWork {
    /// A branch that everybody can read.
    Branch(String),
    /// A place that only the worker can read.
    Kept(KeptWork),
    /// Not on the forge, which refused it or could not be reached for long.
    Unbrought {
        reason: String,
        /// `None` if it could not be written to a file, either.
        file: Option<WorkFile>,
    },
}

/// Location of work that began in a fork, which is pushed to no branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptWork {
    /// The mirror of the fork, from which the run can resume.
    Mirror,
    File(WorkFile),
}

/// A file among the outputs of a run that has ended; `reference` names the work in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkFile {
    pub file: String,
    pub reference: String,
}

/// The cause of a pause.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PausedBy {
    /// A person, by the name that is shown to people.
    Person(String),
    /// All runs of the installation are paused.
    #[serde(rename = "file")]
    AllRuns,
    /// An exhausted budget; the sentence says which.
    Limit(String),
    /// A question of the model for people.
    Question(String),
    /// A result that needs a person's approval.
    Objections(Box<HeldResult>),
    /// A plan that needs a person's approval.
    Plan(Box<HeldPlan>),
}

/// People's last word on whether a run goes on that waits for an answer or an approval. The wait
/// itself stands in [`Paused`], and stays there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LastWord {
    /// It goes on: without an answer, or as was decided.
    GoOn,
    /// It is paused, whatever was answered or decided before.
    Pause {
        at: DateTime<Utc>,
        /// The answers that there were, by their fingerprints.
        answers: BTreeMap<CommentKey, Uuid>,
    },
}

/// A result that waits for a person's approval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldResult {
    /// The question that was put; `None` if an earlier version of the program put it.
    #[serde(default)]
    pub question: Option<Question>,
    /// Whether a different result was approved before.
    #[serde(default)]
    pub is_void: bool,
    /// The files in which that one differs from this one.
    #[serde(default)]
    pub changed: Vec<String>,
    /// The environment that it was made and checked in.
    #[serde(default)]
    pub environment: String,
    pub objections: Vec<HoldReason>,
    /// Number of hold reasons that are not listed.
    #[serde(default)]
    pub more: Unlisted,
    /// Why it does not pass by itself, where that is switched on.
    #[serde(default)]
    pub obstacles: Vec<String>,
    /// Size of what would be pushed.
    #[serde(default)]
    pub extent: Extent,
    /// The diff that would be pushed, without secrets and cut to a maximum length.
    pub diff: String,
    /// Size of the part that `diff` leaves out.
    #[serde(default)]
    pub unseen: Unseen,
}

/// Size of the part of a diff that is not shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// Files that are not shown, or only in part.
    pub files: usize,
    pub lines: u64,
}

/// A task given on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalTask {
    pub text: String,
    pub folder: PathBuf,
    /// The folder is not changed; the diff is only shown.
    pub dry_run: bool,
    /// The environment the person named; it overrides the plan's choice.
    pub environment: Option<String>,
}

/// The state of the work that checks were run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Tree of the files; `None` if it could not be determined.
    pub tree: Option<CommitId>,
    /// Number of the model's turns at that state.
    pub turns: u32,
}

/// The container that checks were run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckedIn {
    /// A new container with the commit and its dependencies.
    Fresh,
    /// The container that the model worked in.
    Work,
    /// The model's container, because setting up a new one would have taken too long.
    WorkBecauseOfSetUp { seconds: u64 },
}

/// The reason why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    /// The reason of the failure, and how whoever wrote the task can fix it.
    pub text: String,
    /// How the operator can fix it, as it stands behind `text`. A later run on the same item is not
    /// told of it, since its model can do nothing about the configuration.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Failure {
    /// Returns the failure of a task that cannot be done.
    pub fn of_task(text: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Task,
            text: text.into(),
            remedy: String::new(),
        }
    }

    /// Returns the sentence for people: what is wrong and how to fix it.
    pub fn in_words(&self) -> String {
        format!("{}{}", self.text, self.remedy)
    }
}

/// The kind of a failure, which determines the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The task could not be done.
    Task,
    /// A rule forbade it.
    Policy,
    /// The model's replies remained unreadable.
    Unreadable,
}

/// An end that no failure brought about. It is decided once: a later process might not find its
/// cause again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndWithoutFailure {
    /// The item was closed or withdrawn, or the run's wait expired.
    Withdrawn { reason: String },
    /// Another installation finished the item.
    FinishedElsewhere,
    /// A person ended it by this order, which counts also where it can be found no more.
    Stopped {
        command: String,
        by: String,
        origin: OrderSource,
    },
}

impl EndWithoutFailure {
    /// Returns the end that an order brings about.
    pub fn by(order: &Order, redactor: &Redactor) -> Self {
        Self::Stopped {
            command: redactor.clean(&order.command.to_string()).into_string(),
            by: order.by.clone(),
            origin: order.origin,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    impl Record {
        /// Returns the record of a run that was set aside at the beginning of 1970, for tests.
        pub(crate) fn set_aside_by(by: PausedBy) -> Self {
            let mut record = Self::default();
            record.waiting.paused = Some(Paused {
                by,
                at: DateTime::UNIX_EPOCH,
                saved: None,
            });
            record
        }
    }

    #[test]
    fn people_have_a_result_until_there_is_another() {
        let (one, other) = ("1".repeat(40), "2".repeat(40));
        let change = json!({"number": 2, "url": "https://github.com/o/r/pull/2"});
        let is_handed_over = |delivered: Value| {
            let record: Record = serde_json::from_value(json!({ "delivered": delivered })).unwrap();
            record.is_handed_over()
        };
        assert!(is_handed_over(json!({"head": one, "handed_over": one})));
        // As an earlier version wrote it.
        assert!(is_handed_over(json!({"head": one, "change": change})));
        assert!(!is_handed_over(
            json!({"head": other, "handed_over": one, "change": change})
        ));
        assert!(!is_handed_over(json!({"handed_over": one, "change": change})));
        assert!(!is_handed_over(json!({"head": one})));
    }

    #[test]
    fn the_attempts_to_show_an_end_count_from_when_its_work_was_brought_or_there_was_none() {
        let begun = DateTime::UNIX_EPOCH;
        let branch = SavedWork::Branch("paint".to_owned());
        for saved in [None, Some(&branch)] {
            let mut record = Record::default();
            record.waiting.end_later(begun, begun);
            record.brought(saved);
            assert_eq!(record.waiting.failing, None);
            assert_eq!(record.delivered.rescued.as_ref(), saved);
        }
        let mut record = Record::default();
        record.brought(None);
        record.waiting.end_later(begun, begun);
        // There is none at each attempt to show the end.
        record.brought(None);
        assert!(record.waiting.failing.is_some());
    }

    #[test]
    fn the_branch_at_the_end_of_a_run_is_the_one_that_had_its_work_then() {
        let delivered = json!({"unfinished": {"paint": ["1".repeat(40)]}});
        let mut record: Record = serde_json::from_value(json!({ "delivered": delivered })).unwrap();
        record.end(DateTime::UNIX_EPOCH);
        // A push to another branch was begun, and failed.
        let begun = vec!["2".repeat(40).parse().unwrap()];
        record.delivered.unfinished.insert("paint-unfinished".to_owned(), begun);
        record.end(DateTime::UNIX_EPOCH);
        let before = SavedWork::Branch("paint".to_owned());
        assert_eq!(record.delivered.pushed_before, Some(before));
    }
}
