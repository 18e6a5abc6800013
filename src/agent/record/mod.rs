//! Everything a run has produced so far: the document that is saved after every stage.

pub mod budget; // what a run may use, and what it has used
pub mod follow_up; // reviews and checks of the program's own pull/merge request
pub mod hold_reason; // why a result needs approval
pub mod vouched; // what the labeler has vouched for
pub mod message; // messages of people to a run
pub mod stop; // cancellation in two degrees
pub mod interruption; // why a stage ended without its result
pub mod outcome; // how the work on a run ended
pub mod saved; // reads and writes saved records of every version
pub(crate) mod redaction; // takes secrets out of what is saved

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::agent::record::budget::Allowance;
use crate::agent::record::follow_up::Round;
use crate::agent::record::hold_reason::{HoldReason, Unlisted};
use crate::agent::record::vouched::VouchedItem;
use crate::approval::extent::Extent;
use crate::approval::{Grant, Question};
use crate::conversation::Usage;
use crate::egress::Refusal;
use crate::evidence::check::{Before, Checked};
use crate::evidence::difference::Finding;
use crate::evidence::repair::Repairs;
use crate::forge::{Change, CommentId, CommentKey, Deed};
use crate::plan::Plan;
use crate::repository::CommitId;
use crate::rules::Rules;
use crate::workspace::base::Base;
use crate::workspace::set_up::dependencies::Dependencies;

/// The saved state of a run, apart from its stage and its conversation.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Record {
    pub title: String,
    /// The person who set the label; `None` for a run that was not started by a label.
    pub trigger: Option<Deed>,
    /// The item's text and head commit when the label was accepted.
    pub vouched: Option<VouchedItem>,
    /// Whether more people can read what is pushed than can read the item; then no text of the item
    /// may appear in it.
    pub is_discreet: bool,
    /// Set for a run that follows up on one of the program's own pull/merge requests.
    pub round: Option<Round>,
    /// Set for a task from the command line, which has no forge.
    pub local: Option<LocalTask>,
    pub started_at: Option<DateTime<Utc>>,
    /// Clone address of the fork that the run works in; `None` for the item's own repository.
    pub fork: Option<String>,
    /// The commit and branch that the work starts from, and the branch that it goes to.
    pub base: Option<Base>,
    pub plan: Option<Plan>,
    pub environment: Option<String>,
    /// The task as shown to the model: the item and its comments when the run began.
    pub task_text: String,
    /// Rule that restricts the run to local models; decided when it began and never withdrawn.
    pub local_only: Option<String>,
    /// The project's rules, as read from its base branch when the run began.
    pub rules: Rules,
    /// Number of times the model was told that its changes touch files excluded by the rules.
    pub reminders: u32,
    /// Report on the plan's set-up commands, for the model.
    pub setup: String,
    /// Duration of the set-up commands, if they were run.
    pub set_up_milliseconds: u64,
    /// Successful commands of the model that did nothing but install dependencies.
    pub installed: Vec<String>,
    /// Set-up commands that the model added to the plan's.
    pub added_set_up: Vec<String>,
    /// Whether the conversation uses native tool calls; decided once for the run.
    pub native: Option<bool>,
    /// The model's latest comment on what it is doing.
    pub doing: String,
    /// The container that holds the whole project after its set-up. Any other container of the run
    /// was left incomplete by a process that was stopped.
    pub container: Option<String>,
    /// Whether the container replaced one that the model worked in, and the model was not told yet.
    pub is_replacement: bool,
    /// Number of containers that were lost.
    pub losses: u32,
    /// Remarks for people, such as a default that was used or a check that was skipped.
    pub notes: Vec<String>,
    /// Inputs of the set-up; `None` if its result is neither saved nor reused.
    pub dependencies: Option<Dependencies>,
    /// Network destinations that the container was refused.
    pub refused: BTreeSet<Refusal>,
    /// Refusals by rules in consecutive replies, since a tool call last succeeded.
    pub refusals: Vec<String>,
    pub turns: u32,
    pub usage: Usage,
    /// Seconds that workers spent on the run before the current one claimed it.
    pub worked_seconds: u64,
    /// The model's closing summary.
    pub summary: Option<String>,
    pub checks: Vec<Checked>,
    /// State of the work that the checks were run on.
    pub checked: Option<Work>,
    /// Container that the checks were run in.
    pub checked_in: Option<CheckedIn>,
    /// Result of the project's tests on the base; they are run there once, and only if they fail
    /// afterwards.
    pub before: Option<Before>,
    pub repair: Repairs,
    /// Number of the model's turns when it was last sent back to work.
    pub sent_back_at: Option<u32>,
    /// Findings in the diff that the task did not ask for.
    pub findings: Vec<Finding>,
    /// Whether the model was asked about the findings.
    pub asked_about_findings: bool,
    /// The accepted result, kept in the mirror: the base if nothing changed, `None` while the model
    /// works.
    pub head: Option<CommitId>,
    /// The result that a person approved for delivery, whatever its hold reasons.
    pub approval: Option<Grant>,
    /// The reason a person gave for denying approval.
    pub denial: Option<String>,
    pub change: Option<Change>,
    /// Comments by marker; `None` means that the comment was about to be posted when this was
    /// saved.
    pub comments: BTreeMap<String, Option<CommentId>>,
    pub failure: Option<Failure>,
    /// Number of consecutive postponements.
    pub postponed: u32,
    /// Start of the current series of postponements.
    pub parked_since: Option<DateTime<Utc>>,
    /// Set while the run waits for a remote service; shown to people.
    pub parked: Option<Parked>,
    /// Comments that the model or the program has read, with the fingerprint of their text.
    pub heard: BTreeMap<CommentKey, Uuid>,
    /// Set while the run is paused.
    pub paused: Option<Paused>,
    /// Number of times the run was paused for people.
    pub set_aside: u32,
    /// The last label that was set on the item.
    pub shown: Option<String>,
    /// Tokens that a person granted beyond the configured budget.
    pub allowance: Option<Allowance>,
    /// Branches that unfinished work was pushed to, the run's own or others, with the commits that
    /// were pushed or were about to be, newest last.
    pub unfinished: BTreeMap<String, Vec<CommitId>>,
    /// Subtasks that the model marked as finished.
    pub finished_subtasks: BTreeSet<String>,
    /// Plans that were replaced by a revision, oldest first.
    pub former_plans: Vec<Plan>,
}

/// A wait that ends without action by people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    pub until: DateTime<Utc>,
    pub reason: String,
}

/// The reason why the run waits for people, and the location of its unfinished work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    pub by: PausedBy,
    pub at: DateTime<Utc>,
    /// Location of the unfinished work.
    #[serde(flatten)]
    pub saved: Option<SavedWork>,
}

/// Location of the work of a run that did not deliver it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SavedWork {
    /// On a branch that everybody can read.
    Branch(String),
    /// Only on the worker.
    Kept(KeptWork),
}

/// Location of work that began in a fork, which is pushed to no branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptWork {
    /// In the mirror of the fork, from which the run can resume.
    Mirror,
    /// In a file among the outputs of a run that has ended; `reference` names the work in it.
    File { file: String, reference: String },
}

/// The cause of a pause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PausedBy {
    /// A person, by the name that is shown to people.
    Person(String),
    /// All runs of the installation are paused.
    File,
    /// An exhausted budget; the sentence says which.
    Limit(String),
    /// A question of the model for people.
    Question(String),
    /// A result that needs a person's approval.
    Objections(Box<HeldResult>),
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
    /// A sentence for people: what is wrong and how to fix it.
    pub text: String,
}

impl Failure {
    /// Returns the failure of a task that cannot be done.
    pub fn of_task(text: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Task,
            text: text.into(),
        }
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

impl Record {
    /// Returns true if no check stands against the result and no test was deleted or skipped.
    pub fn is_verified(&self) -> bool {
        self.passes_checks() && !self.takes_tests_away()
    }

    /// Returns true if every check passed, or failed for a reason outside the work.
    pub fn passes_checks(&self) -> bool {
        !self.checks.iter().any(Checked::is_open)
    }

    /// Returns true if tests were deleted or are no longer run.
    pub fn takes_tests_away(&self) -> bool {
        self.findings.iter().any(|finding| finding.kind.takes_tests_away())
    }

    /// Returns true if there is an accepted change to deliver, by this run or by an earlier one
    /// that was interrupted.
    pub fn has_changes(&self) -> bool {
        match (&self.base, &self.head) {
            (Some(base), Some(head)) => base.holds_work || base.commit != *head,
            _ => false,
        }
    }
}
