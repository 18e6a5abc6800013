//! The summary of earlier runs on the same item that the model reads: what they planned and said,
//! and how they ended.
//!
//! Only the last three runs are included. Their text comes from models and strangers, so it is
//! enclosed in a data block.

use std::fmt::Write as _;

use chrono::{DateTime, Utc};

use crate::agent::claim::Claim;
use crate::agent::dialogue::room;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::{Record, SavedWork};
use crate::agent::text::verification;
use crate::conversation::excerpt;
use crate::plain::counted;
use crate::repository::mirror::Mirror;
use crate::store::Run as StoredRun;
use crate::task::id::RunId;
use crate::task::state::State;
use crate::workspace::base::Base;

/// Maximum number of runs in the summary.
const MOST_RUNS: usize = 3;
/// Number of stored runs that are searched for finished ones.
const LOOKED_THROUGH: u32 = 10;
/// Percentage of the window that the summary may take.
const SHARE: u64 = 6;
const FEWEST_BYTES: usize = 1_500;

/// Earlier runs on the item, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    runs: Vec<StoredRun>,
    beginning: Beginning,
}

/// The work that a run begins with.
#[derive(Debug, Default, PartialEq, Eq)]
enum Beginning {
    /// Its own branch, and there is no unfinished work beside that.
    #[default]
    Branch,
    /// The unfinished work that an earlier run left beside the branch of a pull/merge request.
    UnfinishedWork,
    /// Its own branch, without the unfinished work on the branch of this name.
    WithoutWork(String),
}

/// Loads the earlier runs on the same item, for one that begins at `base`.
pub(crate) async fn recall(claim: &Claim, base: &Base, mirror: &Mirror) -> Result<Memory, Interruption> {
    let runs = claim
        .services
        .store
        .runs(Some(&claim.lease.task), LOOKED_THROUGH)
        .await?;
    let mut memory = Memory::of(runs, claim.lease.run);
    if base.pushed_up_to.is_some() {
        memory.beginning = Beginning::UnfinishedWork;
    } else if let Some(branch) = memory.unfinished_branch().filter(|branch| *branch != base.head_branch)
        && mirror.branch(&branch).await?.is_some()
    {
        memory.beginning = Beginning::WithoutWork(branch);
    }
    Ok(memory)
}

/// Returns the summary for the model, limited to its share of the window.
pub(crate) fn told(claim: &Claim, memory: &Memory, fence: &str) -> String {
    memory.told(fence, room::bytes_of_window(claim, SHARE).max(FEWEST_BYTES))
}

impl Memory {
    /// Selects the last finished ones of `runs`, which are sorted newest first, without the run
    /// `own`.
    fn of(runs: Vec<StoredRun>, own: RunId) -> Self {
        let earlier = runs.into_iter().filter(|run| run.id != own && run.state.is_final());
        let mut runs: Vec<StoredRun> = earlier.take(MOST_RUNS).collect();
        runs.reverse();
        Self {
            runs,
            ..Self::default()
        }
    }

    /// Returns the time at which the latest run ended.
    pub(crate) fn ended_at(&self) -> Option<DateTime<Utc>> {
        self.runs.last().map(|run| run.updated_at)
    }

    /// Returns the branch on which the latest run left unfinished work.
    fn unfinished_branch(&self) -> Option<String> {
        let Ok(record) = Record::read(self.runs.last()?) else {
            return None;
        };
        unfinished_branch(&record)
    }

    fn told(&self, fence: &str, max_bytes: usize) -> String {
        if self.runs.is_empty() {
            return String::new();
        }
        let each = max_bytes / self.runs.len();
        let mut text = format!("\nEarlier runs on it, oldest first:\n<{fence}>\n");
        for run in &self.runs {
            text.push_str(&excerpt::middle_cut(&story(run), each, None));
        }
        let beginning = match &self.beginning {
            Beginning::Branch => String::new(),
            Beginning::UnfinishedWork => " The project has the unfinished work of the last of them.".to_owned(),
            Beginning::WithoutWork(branch) => {
                format!(" The project is without the unfinished work on the branch `{branch}`.")
            }
        };
        let _ = writeln!(
            text,
            "</{fence}>\nGo on from what they found and did.{beginning} Comments marked \"new\" were written since the last of them ended."
        );
        text
    }
}

fn unfinished_branch(record: &Record) -> Option<String> {
    match record.pushed() {
        Some(SavedWork::Branch(branch)) => Some(branch),
        Some(SavedWork::Kept(_) | SavedWork::Unbrought { .. }) | None => None,
    }
}

fn story(run: &StoredRun) -> String {
    let ended = run.updated_at.format("%Y-%m-%d %H:%M");
    let how = match run.state {
        State::Done => "done",
        State::Stopped => "stopped by people",
        _ => "failed",
    };
    let mut text = format!("--- Run that ended at {ended}: {how}\n");
    let Ok(record) = Record::read(run) else {
        text.push_str("What it did cannot be read any more.\n");
        return text;
    };
    if let Some(plan) = &record.planned.plan {
        text.push_str("Its plan:\n");
        for subtask in plan.ordered() {
            let is_finished = record.worked.finished_subtasks.contains(&subtask.id);
            let tick = if is_finished { " (finished)" } else { "" };
            let _ = writeln!(text, "- {}{tick}", subtask.description.trim());
        }
    }
    if let Some(failure) = &record.failure {
        let _ = writeln!(text, "Why it failed: {}", failure.text.trim());
    }
    for denial in record.planned.denials.iter().filter(|denial| !denial.reason.is_empty()) {
        let _ = writeln!(text, "People did not approve a plan of it: {}", denial.reason.trim());
    }
    if let Some(reason) = &record.delivered.denial {
        let _ = writeln!(text, "People did not approve its result: {}", reason.trim());
    }
    if let Some(summary) = record
        .worked
        .summary
        .as_deref()
        .filter(|summary| !summary.trim().is_empty())
    {
        let _ = writeln!(text, "What it said at its end: {}", summary.trim());
    }
    for check in &record.verified.checks {
        let _ = writeln!(text, "Check `{}` {}", check.command, verification::outcome(check));
    }
    for note in &record.thread.notes {
        let _ = writeln!(text, "Note: {note}");
    }
    if let Some(change) = &record.delivered.change {
        let _ = writeln!(text, "Its result: {}", change.url);
    } else if run.state == State::Done && !record.has_changes() {
        text.push_str("It changed nothing.\n");
    } else if let Some(branch) = unfinished_branch(&record) {
        let _ = writeln!(text, "It left its unfinished work on the branch `{branch}`");
    } else if let Some(base) = &record.planned.base {
        let _ = writeln!(text, "It worked on the branch `{}`", base.head_branch);
    }
    let _ = writeln!(
        text,
        "It took {} and {} tokens.",
        counted(record.worked.turns, "model turn"),
        record.worked.usage.input + record.worked.usage.output
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::record::Failure;
    use crate::agent::record::sections::WorkRecord;
    use chrono::TimeZone;

    fn run(state: State, record: &serde_json::Value) -> StoredRun {
        let time = Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).unwrap();
        StoredRun {
            id: RunId::new(),
            task: "github:acme/widgets#1".parse().unwrap(),
            title: "Greet".to_owned(),
            state,
            record: record.clone(),
            created_at: time,
            updated_at: time,
            not_before: None,
        }
    }

    #[test]
    fn nothing_is_told_where_nothing_was() {
        assert_eq!(Memory::default().told("data-1", 1_000), "");
        assert_eq!(Memory::default().ended_at(), None);
    }

    #[test]
    fn the_last_three_finished_runs_are_remembered_oldest_first() {
        let states = [State::Working, State::Done, State::Failed, State::Stopped, State::Done];
        let runs: Vec<StoredRun> = states.map(|state| run(state, &serde_json::json!({}))).into();
        let expected = [runs[3].id, runs[2].id, runs[1].id];
        let memory = Memory::of(runs.clone(), runs[0].id);
        assert_eq!(memory.runs.iter().map(|run| run.id).collect::<Vec<_>>(), expected);
        assert_eq!(Memory::of(runs.clone(), runs[1].id).runs.len(), 3);
    }

    #[test]
    fn a_run_is_told_in_a_few_lines_and_one_that_cannot_be_read_is_no_obstacle() {
        let failed = Record {
            failure: Some(Failure {
                remedy: "; set more".to_owned(),
                ..Failure::of_task("the disk is full")
            }),
            worked: WorkRecord {
                turns: 2,
                ..WorkRecord::default()
            },
            ..Record::default()
        };
        let memory = Memory {
            runs: vec![
                run(
                    State::Stopped,
                    &serde_json::json!({"worked": {"turns": "seven"}, "version": 2}),
                ),
                run(State::Failed, &failed.to_saved().unwrap()),
            ],
            ..Memory::default()
        };
        insta::assert_snapshot!(memory.told("data-1", 10_000), @r#"
        Earlier runs on it, oldest first:
        <data-1>
        --- Run that ended at 2026-01-02 03:04: stopped by people
        What it did cannot be read any more.
        --- Run that ended at 2026-01-02 03:04: failed
        Why it failed: the disk is full
        It took 2 model turns and 0 tokens.
        </data-1>
        Go on from what they found and did. Comments marked "new" were written since the last of them ended.
        "#);
        assert!(memory.told("data-1", 400).len() < 700);
    }
}
