//! What a run has produced so far: the document that is saved after every stage.

pub mod budget; // what a run may use
pub mod follow_up; // reviews and checks of the program's own pull/merge request
pub mod hold_reason; // why a result is not delivered without a person's word
pub mod vouched; // the item as it was when the label was accepted
pub mod message; // what people say to a run
pub mod stop; // how work is told to stop
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
    /// Who put the label on; `None` for a run that nobody's label began.
    pub trigger: Option<Deed>,
    /// The item as it was when the label was accepted.
    pub vouched: Option<VouchedItem>,
    /// Whether more people can read what is pushed than the item: then nothing of its words may be
    /// in it.
    pub is_discreet: bool,
    /// Set for a run that follows on a pull/merge request of this program's own.
    pub round: Option<Round>,
    /// Set for a task from the command line, which has no forge.
    pub local: Option<LocalTask>,
    pub started_at: Option<DateTime<Utc>>,
    /// The clone address of the fork that the run works in; `None` where it works in the item's own
    /// repository.
    pub fork: Option<String>,
    /// Where the work starts.
    pub base: Option<Base>,
    pub plan: Option<Plan>,
    pub environment: Option<String>,
    /// The task as the model is shown it: what people had written when the run began.
    pub task_text: String,
    /// The rule by which the model must be near; decided when the run began, and never taken back.
    pub local_only: Option<String>,
    /// What the project asks, as its base branch said when the run began.
    pub rules: Rules,
    /// How often the model was told that its changes reach files which the rules leave out.
    pub reminders: u32,
    /// What became of the plan's set-up commands, for the model.
    pub setup: String,
    /// How long they took, where they were run.
    pub set_up_milliseconds: u64,
    /// Commands of the model that succeeded and did nothing but install dependencies.
    pub installed: Vec<String>,
    /// Set-up commands that the model added to those of the plan.
    pub added_set_up: Vec<String>,
    /// Whether the conversation uses native tool calls; decided once.
    pub native: Option<bool>,
    /// What the model said last.
    pub doing: String,
    /// The container that holds the whole project, set-up commands included. One that is there and
    /// is not this one was left by a process that did not get that far.
    pub container: Option<String>,
    /// Whether it took the place of another one that the model worked in, and the model was not
    /// told yet.
    pub is_replacement: bool,
    /// How many containers were lost.
    pub losses: u32,
    /// What people should know: a default that stepped in, a check that was skipped.
    pub notes: Vec<String>,
    /// What the set-up depends on; `None` where nothing of it is kept, nor begun with.
    pub dependencies: Option<Dependencies>,
    /// What the container asked for and did not get.
    pub refused: BTreeSet<Refusal>,
    /// What rules refused to the model, reply after reply, since something last succeeded.
    pub refusals: Vec<String>,
    pub turns: u32,
    pub usage: Usage,
    /// How long workers had the run in hand, before the one that has it now.
    pub worked_seconds: u64,
    /// What the model said when it was done.
    pub summary: Option<String>,
    pub checks: Vec<Checked>,
    /// What the checks were run on.
    pub checked: Option<Work>,
    /// Where they were run.
    pub checked_in: Option<CheckedIn>,
    /// What the project's own tests gave before anything was changed; run once, and only when they
    /// fail afterwards.
    pub before: Option<Before>,
    pub repair: Repairs,
    /// How many turns the model had taken when it was last sent back to work.
    pub sent_back_at: Option<u32>,
    /// What the difference shows besides what was asked for.
    pub findings: Vec<Finding>,
    /// Whether the model was told of findings.
    pub asked_about_findings: bool,
    /// The accepted result, kept in the mirror. Equal to the base where nothing changed; `None`
    /// while the model works.
    pub head: Option<CommitId>,
    /// What a person allowed to be delivered, whatever it holds.
    pub approval: Option<Grant>,
    /// Why a person did not allow it.
    pub denial: Option<String>,
    pub change: Option<Change>,
    /// Comments by marker: `None` means that one was about to be written when this was saved.
    pub comments: BTreeMap<String, Option<CommentId>>,
    pub failure: Option<Failure>,
    /// How often in a row the run was put back because of the worker's own trouble.
    pub postponed: u32,
    /// Since when it is put back again and again.
    pub parked_since: Option<DateTime<Utc>>,
    /// Set while it waits for the outside, which people are shown.
    pub parked: Option<Parked>,
    /// Comments whose text the model or the program knows, with the fingerprint of that text.
    pub heard: BTreeMap<CommentKey, Uuid>,
    /// Set while the run is set aside.
    pub paused: Option<Paused>,
    /// How often it was set aside for people.
    pub set_aside: u32,
    /// The label the item was last given.
    pub shown: Option<String>,
    /// What a person allowed beyond the configured budget.
    pub allowance: Option<Allowance>,
    /// Branches that unfinished work was pushed to, the run's own or one beside it, with the
    /// commits that were put there or were about to be, newest last.
    pub unfinished: BTreeMap<String, Vec<CommitId>>,
    /// Subtasks that the model called finished.
    pub finished_subtasks: BTreeSet<String>,
    /// Plans that gave way to a better one, oldest first.
    pub former_plans: Vec<Plan>,
}

/// What a run waits for that goes on by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parked {
    pub until: DateTime<Utc>,
    pub reason: String,
}

/// Why a run does not go on by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paused {
    pub by: PausedBy,
    pub at: DateTime<Utc>,
    /// Where the unfinished work is.
    #[serde(flatten)]
    pub saved: Option<SavedWork>,
}

/// Where the work of a run is that did not deliver it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SavedWork {
    /// On a branch that everybody can see.
    Branch(String),
    /// With this program only.
    Kept(KeptWork),
}

/// How work is kept that stands on no branch, because it began in a fork.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeptWork {
    /// In the fork's mirror, from which the run goes on.
    Mirror,
    /// In a file among the outputs of the run, which is over; the reference names the work in it.
    File { file: String, reference: String },
}

/// Who or what paused a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PausedBy {
    /// Named for people.
    Person(String),
    /// All runs of the installation are paused.
    File,
    /// A budget that is used up, as a sentence.
    Limit(String),
    /// A question of the model to people.
    Question(String),
    /// The result holds what is not delivered without a person's word.
    Objections(Box<HeldResult>),
}

/// A result that waits for a person's word.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldResult {
    /// `None` where an earlier version of the program asked.
    #[serde(default)]
    pub question: Option<Question>,
    /// Whether another result was allowed before.
    #[serde(default)]
    pub is_void: bool,
    /// The files in which that one differs from this one.
    #[serde(default)]
    pub changed: Vec<String>,
    /// The environment that it was made and checked in.
    #[serde(default)]
    pub environment: String,
    pub objections: Vec<HoldReason>,
    /// Objections besides.
    #[serde(default)]
    pub more: Unlisted,
    /// How much would be pushed.
    #[serde(default)]
    pub extent: Extent,
    /// What would be pushed, without secrets; cut where it is long.
    pub diff: String,
    /// How much of the difference that leaves out.
    #[serde(default)]
    pub unseen: Unseen,
}

/// What of a difference is not shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unseen {
    /// Files that are not shown, or not to their end.
    pub files: usize,
    pub lines: u64,
}

/// A task given on the command line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalTask {
    pub text: String,
    pub folder: PathBuf,
    /// The folder stays as it is; the difference is only shown.
    pub dry_run: bool,
    /// Named by the person; the plan's choice does not count.
    pub environment: Option<String>,
}

/// A state of the work that checks were run on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Work {
    /// Its files; `None` where they could not be told.
    pub tree: Option<CommitId>,
    /// How many turns the model had taken.
    pub turns: u32,
}

/// Which container checks were run in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CheckedIn {
    /// A new one with the commit.
    Fresh,
    /// The one that the model worked in.
    Work,
    /// The same, because to set up a new one would have taken too long.
    WorkBecauseOfSetUp { seconds: u64 },
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub kind: FailureKind,
    /// A sentence for people: what is wrong and how to mend it.
    pub text: String,
}

impl Failure {
    /// Returns the failure of a task that could not be done.
    pub fn of_task(text: impl Into<String>) -> Self {
        Self {
            kind: FailureKind::Task,
            text: text.into(),
        }
    }
}

/// Decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The task could not be done.
    Task,
    /// A rule of the program forbade it.
    Policy,
    /// The model's replies stayed unreadable.
    Unreadable,
}

impl Record {
    /// Tells whether nothing stands against the result: no check, and no test that was taken away.
    pub fn is_verified(&self) -> bool {
        self.passes_checks() && !self.takes_tests_away()
    }

    /// Tells whether every check that was run passed, or failed through no fault of the work.
    pub fn passes_checks(&self) -> bool {
        !self.checks.iter().any(Checked::is_open)
    }

    /// Tells whether tests that were there are gone or not run any more.
    pub fn takes_tests_away(&self) -> bool {
        self.findings.iter().any(|finding| finding.kind.takes_tests_away())
    }

    /// Tells whether there is something accepted to deliver: changed by this run, or by an earlier
    /// one that was cut short.
    pub fn has_changes(&self) -> bool {
        match (&self.base, &self.head) {
            (Some(base), Some(head)) => base.holds_work || base.commit != *head,
            _ => false,
        }
    }
}
