//! The facts of the journal. Each fact is in the past tense and says it all: nobody has to look up
//! an earlier line.

pub mod chat; // what became of messages of people in messengers
pub mod egress; // what programs in containers reach
pub mod evaluation; // what other programs have evaluated
pub mod picture; // what became of pictures of people
pub mod reply; // what was wrong with a reply
pub mod set_up; // why a set-up was not kept
mod cleaning; // without secrets, and cut
mod written; // times and states, as a line of the journal has them

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::review::score::Score;
use crate::task::id::{RunId, TaskId};
use crate::task::state::State;

/// One line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    #[serde(serialize_with = "written::with_milliseconds")]
    pub at: DateTime<Utc>,
    #[serde(flatten)]
    pub subject: Subject,
    #[serde(flatten)]
    pub fact: Fact,
}

/// The subject of a fact: a run, a task as a whole, or the worker (neither).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
}

/// An event, with its details.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "fact", rename_all = "snake_case")]
pub enum Fact {
    WorkerStarted,
    WorkerStopped,
    /// Containers that an earlier process had left were removed.
    Swept {
        containers: usize,
    },
    Admitted {
        title: String,
    },
    /// A run was admitted because of reviews or checks of a pull/merge request of this program.
    FollowedUp {
        kind: String,
        round: u32,
    },
    Claimed {
        /// The machine, where several share a store: the whole outputs of tools lie there.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        machine: Option<String>,
        /// The state of the run, in which the work goes on; empty in older lines.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        state: String,
    },
    StageChanged {
        #[serde(with = "written::as_text")]
        from: State,
        #[serde(with = "written::as_text")]
        to: State,
    },
    Planned {
        environment: String,
        subtasks: usize,
        /// Fingerprint of the planner's input; empty where the same may give another plan.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        input: String,
        /// Digest of the plan.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        digest: String,
    },
    /// The plan that the work goes by from now on, whole; one that is too long is a text, cut.
    PlanMade {
        plan: Value,
    },
    EnvironmentStarted {
        environment: String,
        image: String,
        /// The image's digest with its name, or its id where no registry knows it.
        #[serde(default)]
        digest: String,
        /// The same for the services that were started with it, by their names.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        services: BTreeMap<String, String>,
        container: String,
        milliseconds: u64,
        /// Whether it began from the kept result of the same set-up.
        is_set_up: bool,
        /// Whether it was started before and waited for the run.
        #[serde(default)]
        has_waited: bool,
    },
    /// A container was started that waits for a run.
    EnvironmentWarmed {
        environment: String,
        container: String,
        milliseconds: u64,
    },
    /// A set-up was not kept.
    SetUpNotKept(set_up::NotKept),
    /// A new container got the result, and what was installed for it, to be checked there.
    CheckEnvironmentStarted {
        environment: String,
        container: String,
        /// Time until checks could be run in it.
        milliseconds: u64,
        /// Whether it began from the kept result of the same set-up.
        is_set_up: bool,
        /// Whether it was started before and waited for a run.
        has_waited: bool,
    },
    EnvironmentRemoved {
        container: String,
    },
    /// A program in the container asked for a host that it may not reach. Each host and port once
    /// in a run.
    EgressRefused(egress::Refused),
    /// Connections of programs in the container to a host that they may reach, which ended since
    /// the last such line about it: at most one line a minute for each host and port, and one at
    /// the end.
    EgressAllowed(egress::Allowed),
    /// In tokens; `cached` and `cache_written` are part of `input`. `turn` is 0 outside of runs.
    ModelCalled {
        turn: u32,
        input: u64,
        output: u64,
        cached: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cache_written: Option<u64>,
        milliseconds: u64,
        /// The model's name in the configuration, and the role it was asked in.
        #[serde(default)]
        model: String,
        #[serde(default)]
        role: String,
    },
    /// A number of messages were replaced by a summary.
    Compacted {
        messages: usize,
    },
    /// A long reply is being made; about this many tokens of it have arrived.
    ReplyArriving {
        tokens: u64,
    },
    /// A reply repeated itself over and over, and was ended before its end.
    ReplyRepeated(reply::Repeated),
    /// The repository is being fetched, which takes long; git's last line about how far it is.
    RepositoryArriving {
        progress: String,
    },
    /// The model went round in circles, so messages were replaced by the facts.
    ConversationRestarted(reply::Restarted),
    /// The task was begun again at the base.
    BegunAgain(reply::BegunAgain),
    ReplyUnreadable {
        attempt: u32,
        reason: String,
    },
    /// `about` is the command, the path or whatever else tells one call from the next, on one line.
    /// A call of a file tool has the whole `path`, the `status` that the tool answered with (200,
    /// or the number of its refusal) and the `size` in bytes of a file that it read or wrote.
    ToolCalled {
        tool: String,
        #[serde(default)]
        about: String,
        is_error: bool,
        bytes: usize,
        milliseconds: u64,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
    },
    /// A rule of the program, its configuration or the project kept the run from something. `rule`
    /// is one word, such as `left_out`.
    PolicyRefused {
        rule: String,
        reason: String,
    },
    Commented {
        marker: String,
    },
    LabelChanged {
        added: Option<String>,
        removed: Option<String>,
    },
    Verified {
        command: String,
        exit_code: Option<i64>,
        passed: bool,
    },
    /// The project's tests were run on what was there before the change.
    VerifiedBefore {
        command: String,
        exit_code: Option<i64>,
    },
    /// The model was asked about so much that its changes show besides what was asked for.
    Questioned {
        findings: usize,
    },
    /// The model said done, and was shown once more what the task asks for.
    AskedTwice,
    /// The model may not try to repair the failure any more.
    RepairEnded {
        reason: String,
    },
    /// A result is about to be delivered, or people are about to be asked for it. `difference` is
    /// what it changes, cut where it is long.
    DifferenceMade {
        commit: String,
        difference: String,
        is_cut: bool,
    },
    Pushed {
        branch: String,
        commit: String,
    },
    /// The program itself found faults in a plan, before anybody was asked about it.
    PlanFaulty {
        round: usize,
        faults: Vec<String>,
    },
    /// The reviewer is asked about a plan or a result (`what`), which the digest names.
    ReviewRequested {
        what: String,
        round: usize,
        digest: String,
        model: String,
    },
    /// The reviewer has judged. `score` is from 0 to 10; `ready` is what the reviewer says, and
    /// `passed` what the program decides; `blockers` are those that count.
    ReviewGiven {
        what: String,
        round: usize,
        digest: String,
        model: String,
        score: Score,
        ready: bool,
        passed: bool,
        blockers: usize,
        unproven: usize,
    },
    /// No review came of it.
    ReviewMissing {
        what: String,
        round: usize,
        digest: String,
        model: String,
        reason: String,
    },
    /// A plan or result did not pass and is not made better again. `follows` is what the
    /// configuration says then, such as `draft`.
    ReviewUnready {
        what: String,
        digest: String,
        reason: String,
        follows: String,
    },
    /// Unfinished work that may not be shown on a branch is kept with the program.
    WorkKept {
        place: String,
    },
    /// A branch with unfinished work, which was delivered since, was deleted.
    BranchDeleted {
        branch: String,
    },
    ChangeOpened {
        number: u64,
        url: String,
    },
    /// An open request follows another result.
    ChangeBroughtInStep {
        change: String,
        is_draft: bool,
    },
    /// The work on the run ended, for good or for now.
    PutDown {
        ending: String,
    },
    /// The run waits for a remote service or a limit until the given time.
    Postponed {
        until: DateTime<Utc>,
        reason: String,
    },
    /// A person wrote to the run: text for the model, or a command.
    Heard {
        author: String,
        what: String,
    },
    /// A person wrote something that does not count.
    Ignored {
        author: String,
        reason: String,
    },
    /// A command was obeyed.
    Ordered {
        by: String,
        command: String,
    },
    /// People were asked to allow what the digest names.
    ApprovalRequested {
        id: Uuid,
        digest: String,
    },
    ApprovalGranted {
        id: Uuid,
        approver: String,
        digest: String,
    },
    ApprovalDenied {
        id: Uuid,
        approver: String,
        digest: String,
        reason: String,
    },
    /// A result passed without a person, as `approver` had allowed for a time.
    ApprovalAutoApproved {
        id: Uuid,
        approver: String,
        digest: String,
    },
    /// Somebody has switched automatic approval on.
    AutomaticApprovalStarted {
        by: String,
        until: DateTime<Utc>,
    },
    AutomaticApprovalEnded {
        by: String,
    },
    /// It was decided what becomes of a message in a messenger.
    RouterDecision(chat::DecidedRoute),
    /// The classifier did not decide; the message went to CHAT.
    ClassifierError {
        session: String,
        reason: String,
    },
    /// A message went on, on another route than the one that was decided on.
    RouteOverridden(chat::OtherRoute),
    /// A message went on no more, before it had its answer; for instance by `max_loops`.
    LoopStopped {
        session: String,
        reason: String,
    },
    /// A message was answered.
    FinalRoute(chat::EndedRoute),
    /// A worker for a message in a messenger answered.
    WorkerSucceeded(chat::WorkerAnswer),
    /// A worker for a message in a messenger gave no answer that could be read.
    WorkerFailed(chat::NoWorkerAnswer),
    /// Another program has a document evaluated.
    EvaluationStarted(evaluation::Started),
    EvaluationEnded(evaluation::Ended),
    /// No review came of the evaluation.
    EvaluationFailed(evaluation::Failed),
    /// A picture was about to be shown to a model, or was not. One fact for each picture and model.
    PictureShown(picture::Shown),
    /// A model in a conversation that was shown pictures gave no answer, such as after a time-out.
    PictureUnanswered(picture::Unanswered),
    /// Another plan took the place of the one before.
    Replanned {
        reason: String,
        subtasks: usize,
    },
    /// Saved for the next process, because this one was asked to stop.
    Interrupted,
    /// Something a person should know; the work went on.
    Warned {
        text: String,
    },
    /// The run, or what the worker was about to do, ended here.
    Failed {
        reason: String,
    },
}

/// Maximum bytes of a plan or a difference, which are kept whole up to here.
pub const LONGEST_DOCUMENT: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret::Redactor;
    use crate::task::state::Stage;

    #[test]
    fn a_line_is_one_flat_object() {
        let entry = Entry {
            at: DateTime::from_timestamp_millis(1_780_000_000_120).unwrap(),
            subject: Subject {
                task: "gitlab:group/project!34".parse().ok(),
                run: "019aa6b2-0000-7000-8000-000000000000".parse().ok(),
            },
            fact: Fact::StageChanged {
                from: State::Paused(Stage::Working),
                to: State::Working,
            },
        };
        let line = serde_json::to_string(&entry).unwrap();
        insta::assert_snapshot!(line, @r#"{"at":"2026-05-28T20:26:40.120Z","task":"gitlab:group/project!34","run":"019aa6b2-0000-7000-8000-000000000000","fact":"stage_changed","from":"paused:working","to":"working"}"#);
        assert_eq!(serde_json::from_str::<Entry>(&line).unwrap(), entry);
    }

    #[test]
    fn a_long_text_is_cut_after_it_was_cleaned() {
        let secret = "s3cret-s3cret";
        let text = format!("{}{secret}{}", "é".repeat(1_995), "x".repeat(9_000));
        let Fact::Failed { reason } = (Fact::Failed { reason: text }).cleaned(&Redactor::new(&[secret.into()])) else {
            panic!("another fact");
        };
        assert!(reason.len() < 4_010 && !reason.contains("s3cret"), "{reason}");
    }

    #[test]
    fn a_plan_is_cleaned_in_its_depth_and_a_huge_one_is_cut() {
        let redactor = Redactor::new(&["s3cret-s3cret".into()]);
        let made = |plan: Value| (Fact::PlanMade { plan }).cleaned(&redactor);
        let plan = serde_json::json!({ "steps": [{ "command": "echo s3cret-s3cret" }] });
        let clean = serde_json::json!({ "steps": [{ "command": "echo [redacted]" }] });
        assert_eq!(made(plan), Fact::PlanMade { plan: clean });
        let Fact::PlanMade { plan } = made(vec!["step"; LONGEST_DOCUMENT].into()) else {
            panic!("another fact");
        };
        let text = plan.as_str().map(str::len);
        assert!(text.is_some_and(|bytes| bytes < LONGEST_DOCUMENT + 4), "{text:?}");
    }
}
