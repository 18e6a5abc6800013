//! The sections of a record: each is written by the stage or part that it is named after.

pub mod failed_attempts; // attempts to end a run that failed

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::agent::record::budget::Allowance;
use crate::agent::record::follow_up::Round;
use crate::agent::record::message::SeenComment;
use crate::agent::record::sections::failed_attempts::FailedAttempts;
use crate::agent::record::usage::ModelUsage;
use crate::agent::record::vouched::VouchedItem;
use crate::agent::record::{CheckedIn, LastWord, LocalTask, Parked, Paused, PushedResult, SavedWork, Work};
use crate::approval::Grant;
use crate::approval::proposal::{Denial, PlanGrant};
use crate::conversation::Usage;
use crate::egress::Refusal;
use crate::evidence::check::{Before, Checked};
use crate::evidence::difference::Finding;
use crate::evidence::repair::Repairs;
use crate::evidence::tries::Tries;
use crate::evidence::unmentioned::Unmentioned;
use crate::forge::{Change, CommentId, CommentKey, ItemEvent};
use crate::plan::Plan;
use crate::plan::evidence::Citation;
use crate::repository::CommitId;
use crate::review::rounds::ReviewLoop;
use crate::rules::Rules;
use crate::workspace::base::Base;
use crate::workspace::set_up::dependencies::Dependencies;

/// Maximum delay between two attempts, unless the remote service names a later time.
const LONGEST_WAIT_MINUTES: i64 = 60;

/// The request: what was asked for, who asked, and how the work on it is restricted. Written by the
/// producer and by planning.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestRecord {
    pub title: String,
    /// The person who asked for the work; `None` for a run that nobody asked for on the item.
    pub trigger: Option<ItemEvent>,
    /// How that person asked.
    pub started_by: StartedBy,
    /// The item's text and head commit when the request was accepted.
    pub vouched: Option<VouchedItem>,
    /// Whether more people can read what is pushed than can read the item; then no text of the item
    /// may appear in it.
    pub is_discreet: bool,
    /// Set for a run that follows up on one of the program's own pull/merge requests.
    pub round: Option<Round>,
    /// Set for a task from the command line, which has no forge.
    pub local: Option<LocalTask>,
    /// Rule that restricts the run to local models; decided when it began and never withdrawn.
    pub local_only: Option<String>,
    /// The claim on the item that was written on the forge before the run was written down.
    pub claimed: Option<WrittenClaim>,
    /// The model that plans and works, where whoever asked named one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// A claim on an item that this installation has written on its forge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WrittenClaim {
    pub commit: CommitId,
    /// By the forge's clock.
    pub until: DateTime<Utc>,
}

/// How somebody asked for work on an item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartedBy {
    #[default]
    Label,
    /// By mentioning the bot's account.
    Mention,
    /// By assigning the item to the bot's account.
    Assignment,
}

/// How the names begin under which the store keeps plans for later runs.
pub const KEPT_PLANS: &str = "plan ";

/// The result of planning: where the work starts, and how it is to be done.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PlanningRecord {
    pub started_at: Option<DateTime<Utc>>,
    /// Clone address of the fork that the run works in; `None` for the item's own repository.
    pub fork: Option<String>,
    /// The commit and branch that the work starts from, and the branch that it goes to.
    pub base: Option<Base>,
    pub plan: Option<Plan>,
    /// Fingerprint of what the planner was given, where the same input is to give the same plan.
    pub input: Option<String>,
    pub environment: Option<String>,
    /// The task as shown to the model: the item and its comments when the run began, and what
    /// people said before the worker's first reply.
    pub task_text: String,
    /// The pictures in that text.
    pub pictures: Vec<LinkedPicture>,
    /// The project's rules, as read from its base branch when the run began.
    pub rules: Rules,
    /// Inputs of the set-up; `None` if its result is neither saved nor reused.
    pub dependencies: Option<Dependencies>,
    /// Plans that were replaced by a revision, oldest first.
    pub former_plans: Vec<Plan>,
    /// The approval of the plan, if a person gave one.
    pub approval: Option<PlanGrant>,
    /// Plans that people did not approve, oldest first.
    pub denials: Vec<Denial>,
    /// The words of the task by which its places are looked for, without secrets.
    pub question: String,
    /// Where the files of the base can be looked at; empty where nobody can. A path follows.
    pub files_url: String,
    /// The places that the plan rests on, as the program found them.
    pub evidence: Vec<Evidence>,
    /// Why a revision of the plan was not approved; set until the model was told.
    pub refused_revision: Option<String>,
}

/// A picture in a text that the model may read, or that came with the request for the task.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LinkedPicture {
    /// Empty where it came with the request.
    pub address: String,
    /// Who wrote the text, or asked.
    pub from: String,
    /// Its place among the pictures that came with the request, which the store has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<usize>,
}

/// A place that a plan rests on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Evidence {
    pub cited: Citation,
    /// Where people can look at it.
    pub link: Option<String>,
    /// Why the place is doubtful: it does not exist, or does not hold what is said of it.
    pub fault: Option<String>,
}

/// The result of preparing: the container and its set-up.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PreparationRecord {
    /// Report on the plan's set-up commands, for the model.
    pub setup: String,
    /// Duration of the set-up commands, if they were run.
    pub set_up_milliseconds: u64,
    /// The container with the whole project after its set-up; any other of the run is incomplete.
    pub container: Option<String>,
    /// Whether the container replaced one that the model worked in, and the model was not told yet.
    pub is_replacement: bool,
    /// Whether the run was prepared before, and worked: its revised plan waited for approval.
    pub is_repeated: bool,
    /// Number of containers that were lost.
    pub losses: u32,
}

/// The result of working, and what it has used.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorkRecord {
    /// Number of times the model was told that its changes touch files excluded by the rules.
    pub reminders: u32,
    /// Whether replies hold whole files as text since the conversation began anew.
    pub whole_files: bool,
    /// Tries at the task, each from the base.
    pub tries: Tries,
    /// The paragraph on tests that fail before the work, for a model that cannot run them; empty
    /// where none fails or none could be run, and `None` before that was looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing_tests: Option<String>,
    /// Tools of MCP servers that were called, written down before they are.
    pub outside_tools: BTreeSet<String>,
    /// Successful commands of the model that did nothing but install dependencies.
    pub installed: Vec<String>,
    /// Set-up commands that the model added to the plan's.
    pub added_set_up: Vec<String>,
    /// Whether the conversation uses native tool calls; decided once for the run, unless the server
    /// takes none any more.
    pub native: Option<bool>,
    /// Whether the conversation was begun with native tool calls and goes on without.
    pub is_switched: bool,
    /// The model's latest comment on what it is doing.
    pub doing: String,
    /// Network destinations that the container was refused.
    pub refused: BTreeSet<Refusal>,
    /// Refusals by rules in consecutive replies, since a tool call last succeeded.
    pub refusals: Vec<String>,
    pub turns: u32,
    pub usage: Usage,
    /// Usage by model and role; runs of earlier versions have less here than in `usage`.
    pub by_model: Vec<ModelUsage>,
    /// Seconds that workers spent on the run before the current one claimed it.
    pub worked_seconds: u64,
    /// The model's closing summary.
    pub summary: Option<String>,
    /// Subtasks that the model marked as finished.
    pub finished_subtasks: BTreeSet<String>,
}

/// The result of verifying.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct VerificationRecord {
    pub checks: Vec<Checked>,
    /// State of the work that the checks were run on.
    pub checked: Option<Work>,
    /// Container that the checks were run in.
    pub checked_in: Option<CheckedIn>,
    /// Result of the project's tests before all work of the program; they are run there once, and
    /// only if they fail afterwards.
    pub before: Option<Before>,
    pub repair: Repairs,
    /// Number of the model's turns when it was last sent back to work; `None` once it has finished
    /// again.
    pub sent_back_at: Option<u32>,
    /// Number of times the model was told that its work cannot be taken as it is.
    pub refusals: u32,
    /// Findings in the diff that the task did not ask for.
    pub findings: Vec<Finding>,
    /// Whether the model was asked about the findings.
    pub asked_about_findings: bool,
    /// The states of the work at which the model was asked about tests that failed before it.
    pub asked_about_old_failures: Vec<Work>,
    /// Number of the model's turns when it was shown once more what the task asks for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_twice_at: Option<u32>,
    /// Parts of the task that no test mentions, where all checks passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmentioned: Vec<Unmentioned>,
}

/// The judgements of a second model, and of the program itself, on plan and result. Written by
/// reviewing.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReviewRecord {
    pub plan: ReviewLoop,
    pub result: ReviewLoop,
    /// The faults that the program itself found in each plan that it sent back, oldest first.
    pub faults: Vec<Vec<String>>,
    /// Whether the planner is making a better plan because of the last of `faults`.
    pub is_plan_faulty: bool,
    /// Why the plan was not ready, where it is carried out all the same.
    pub plan_unready: Option<String>,
    /// Why the result was not ready, where it is delivered as a draft for that.
    pub result_unready: Option<String>,
    /// Number of the model's turns when it was last sent back to work with a review.
    pub sent_back_at: Option<u32>,
}

impl ReviewRecord {
    /// Returns true if the planner is to make a better plan in the place of the one that there is.
    pub fn is_plan_sent_back(&self) -> bool {
        self.is_plan_faulty || self.plan.is_sent_back()
    }
}

/// The result, and what of it was pushed and opened.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DeliveryRecord {
    /// The accepted result, kept in the mirror: the base if nothing changed, `None` while the model
    /// works.
    pub head: Option<CommitId>,
    /// The result whose difference is in the journal.
    pub noted: Option<CommitId>,
    /// The commit whose hold reasons are in the journal.
    pub withheld: Option<CommitId>,
    /// The result that a person approved for delivery, whatever its hold reasons.
    pub approval: Option<Grant>,
    /// The result that passed without a person; judged anew before each push.
    pub passed: Option<Grant>,
    /// The reason a person gave for denying approval.
    pub denial: Option<String>,
    pub change: Option<Change>,
    /// The result that was pushed last.
    pub pushed: Option<PushedResult>,
    /// The result that people have: in the request that was opened for it, or on the branch of the
    /// request that was worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<CommitId>,
    /// Whether the request got the labels and people of the configuration.
    pub is_furnished: bool,
    /// Branches that unfinished work was pushed to, the run's own or others, with the commits that
    /// were pushed or were about to be, newest last.
    pub unfinished: BTreeMap<String, Vec<CommitId>>,
    /// The branch that had work of the run when its end was decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed_before: Option<SavedWork>,
    /// The place that the work was brought to when the run ended without delivering it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rescued: Option<SavedWork>,
    /// Why the last of the work may be missing in what was taken out of the container, or kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
    /// Whether the work of the run that ends was brought to a branch or file, or found to be none.
    pub is_brought: bool,
}

/// Why and since when the run does not go on by itself, and what it may use. Written where a run
/// is interrupted or resumed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WaitingRecord {
    /// Number of consecutive postponements.
    pub postponed: u32,
    /// Start of the current series of postponements.
    pub parked_since: Option<DateTime<Utc>>,
    /// Set while the run waits for a remote service; shown to people.
    pub parked: Option<Parked>,
    /// Set while the run is paused.
    pub paused: Option<Paused>,
    /// People's last word on whether the run goes on that waits for an answer or an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_word: Option<LastWord>,
    /// Number of times the run was paused for people.
    pub set_aside: u32,
    /// Tokens that a person granted beyond the configured budget.
    pub allowance: Option<Allowance>,
    /// The time at which the end of the run was decided; it may be shown much later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<DateTime<Utc>>,
    /// Set while it fails to bring the work of the run that ends, or to show its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failing: Option<FailedAttempts>,
}

impl WaitingRecord {
    /// Counts a postponement, and returns the time of the next attempt, which comes ever later.
    pub fn postpone(&mut self, now: DateTime<Utc>) -> DateTime<Utc> {
        self.postponed += 1;
        now + TimeDelta::minutes((1_i64 << self.postponed.min(10)).min(LONGEST_WAIT_MINUTES))
    }

    /// Records that the end of the run is decided, unless it was decided before. The postponements
    /// until then do not count for the attempts to show it.
    pub fn end(&mut self, now: DateTime<Utc>) {
        if self.ended_at.is_none() {
            self.ended_at = Some(now);
            self.postponed = 0;
        }
    }

    /// Returns since when it was tried to bring the work of the run that ends, or to show its end,
    /// if another attempt fails now.
    pub fn failing_since(&self, now: DateTime<Utc>) -> DateTime<Utc> {
        self.failing.map_or(now, |failing| failing.since(now))
    }

    /// Counts a failed attempt to bring the work of the run that ends, or to show its end, and
    /// returns the time of the next, not before `until`.
    pub fn end_later(&mut self, now: DateTime<Utc>, until: DateTime<Utc>) -> DateTime<Utc> {
        let since = self.failing_since(now);
        let next = self.postpone(now).max(until);
        self.failing = Some(FailedAttempts { since, next });
        next
    }

    /// Returns the name of the comment that says what the run was paused for.
    pub fn comment(&self) -> String {
        format!("set-aside-{}", self.set_aside)
    }
}

/// The conversation on the item, in both directions.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ThreadRecord {
    /// Remarks for people, such as a default that was used or a check that was skipped.
    pub notes: Vec<String>,
    /// Comments by marker; `None` means that the comment was about to be posted when this was
    /// saved.
    pub comments: BTreeMap<String, Option<CommentId>>,
    /// Comments that the model or the program has read, with the fingerprint of their text.
    pub heard: BTreeMap<CommentKey, Uuid>,
    /// Comments that were noted and acknowledged, or ignored, while the run waited; none that does
    /// not exist any more.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<CommentKey, SeenComment>,
    /// The last label that was set on the item.
    pub shown: Option<String>,
    /// Whether the item was seen assigned to the bot's account; a run of it is no longer wanted
    /// when it is not any more.
    pub was_assigned: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_attempts_to_show_an_end_begin_anew_and_its_decision_keeps_its_time() {
        let at = |minute| DateTime::UNIX_EPOCH + TimeDelta::minutes(minute);
        let mut waiting = WaitingRecord {
            postponed: 7,
            ..WaitingRecord::default()
        };
        waiting.end(at(1));
        let attempts: Vec<_> = (0..7).map(|_| waiting.postpone(at(0))).collect();
        assert_eq!(attempts, [2, 4, 8, 16, 32, 60, 60].map(at));
        waiting.end(at(200));
        assert_eq!((waiting.ended_at, waiting.postponed), (Some(at(1)), 7));
    }

    #[test]
    fn failed_attempts_to_end_a_run_count_from_the_first_one() {
        let at = |minute| DateTime::UNIX_EPOCH + TimeDelta::minutes(minute);
        let mut waiting = WaitingRecord::default();
        assert_eq!(waiting.failing_since(at(5)), at(5));
        assert_eq!(waiting.end_later(at(5), at(0)), at(7));
        assert_eq!(waiting.end_later(at(7), at(30)), at(30), "the forge named a time");
        assert_eq!(waiting.failing_since(at(31)), at(5));
    }
}
