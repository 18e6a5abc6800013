//! How a run stands and how it ended, as a conversation is told it.

use chrono::{DateTime, Utc};

use crate::agent::record::{PausedBy, Record};
use crate::chat::phrases::Wording;
use crate::chat::watched::Watched;
use crate::plain::one_line;
use crate::store::Run;
use crate::task::state::State;

/// Most steps of a plan that are shown.
pub(super) const MOST_STEPS: usize = 15;
/// Most characters of a line that a model wrote.
const LONGEST_LINE: usize = 200;

/// Returns the text that is changed as the work goes on.
pub(super) fn progress(run: &Run, record: &Record, watched: &Watched) -> String {
    let wording = watched.wording();
    let mut lines = vec![
        format!("{} {}", sign(run.state), watched.url),
        state(run.state, wording).to_owned(),
    ];
    if let Some(plan) = &record.planned.plan {
        let steps = &plan.task_decomposition.subtasks;
        lines.extend(steps.iter().take(MOST_STEPS).map(|step| {
            let is_whole = run.state == State::Done && record.has_changes();
            let is_finished = is_whole || record.worked.finished_subtasks.contains(&step.id);
            format!("{} {}", if is_finished { "☑" } else { "☐" }, cut(&step.description))
        }));
        let more = steps.len().saturating_sub(MOST_STEPS);
        if more > 0 {
            lines.push(and_more(more, wording));
        }
    }
    if !run.state.is_final() && !record.worked.doing.is_empty() {
        lines.push(format!("> {}", cut(&record.worked.doing)));
    }
    lines.join("\n")
}

fn sign(state: State) -> &'static str {
    match state {
        State::Done => "✅",
        State::Failed => "❌",
        State::Stopped => "⏹",
        State::Paused(_) => "⏸",
        State::AwaitingApproval(_) | State::AwaitingAnswer => "✋",
        _ => "⏳",
    }
}

fn state(state: State, wording: Wording) -> &'static str {
    let (english, japanese) = match state {
        State::Queued => ("waits for a worker", "順番を待っています"),
        State::Planning => ("is planned", "計画しています"),
        State::Reviewing(_) => ("is reviewed", "レビューしています"),
        State::AwaitingApproval(_) => ("waits for approval", "承認を待っています"),
        State::Preparing => ("the environment is prepared", "環境を準備しています"),
        State::Working => ("is worked on", "作業しています"),
        State::AwaitingAnswer => ("waits for an answer", "回答を待っています"),
        State::Verifying => ("is verified", "検証しています"),
        State::Delivering => ("is delivered", "提出しています"),
        State::Paused(_) => ("is paused", "一時停止しています"),
        State::Done => ("done", "完了しました"),
        State::Stopped => ("stopped", "中止しました"),
        State::Failed => ("failed", "失敗しました"),
    };
    wording.of(english, japanese)
}

/// Returns what a run waits for that is no approval, and since when.
pub(super) fn other_wait(run: &Run, record: &Record) -> Option<(DateTime<Utc>, String)> {
    let paused = record.waiting.paused.as_ref().filter(|_| run.state.is_set_aside())?;
    match &paused.by {
        PausedBy::Question(text) | PausedBy::Limit(text) => Some((paused.at, cut(text))),
        _ => None,
    }
}

/// Returns how it ended: the verdict, the link and the cost.
pub(super) fn ending(run: &Run, record: &Record, watched: &Watched, cost_usd: Option<f64>) -> String {
    let wording = watched.wording();
    let (english, japanese) = match (run.state, record.is_verified()) {
        (State::Done, _) if !record.has_changes() => {
            ("☑️ Done; nothing was changed", "☑️ 完了しました。変更はありません")
        }
        (State::Done, true) if !record.is_checked() => (
            "☑️ Done, and nothing was checked",
            "☑️ 完了しましたが、検証は何も行われていません",
        ),
        (State::Done, true) => ("✅ Done and verified", "✅ 完了し、検証に通りました"),
        (State::Done, false) => (
            "⚠️ Done, but not verified: it is a draft",
            "⚠️ 完了しましたが、検証に通っていない下書きです",
        ),
        (State::Stopped, _) => ("⏹ Stopped", "⏹ 中止しました"),
        _ => ("❌ Failed", "❌ 失敗しました"),
    };
    let mut lines = vec![wording.of(english, japanese).to_owned()];
    if let Some(change) = &record.delivered.change {
        lines.push(change.url.clone());
    }
    lines.push(watched.url.clone());
    if let Some(summary) = &record.worked.summary {
        let words: String = summary.chars().take(1_000).collect();
        lines.push(if run.state == State::Done && !record.has_changes() {
            format!("{} {words}", wording.of("The model says:", "モデルの説明："))
        } else {
            words
        });
    }
    if let Some(failure) = &record.failure {
        lines.push(cut(&failure.in_words()));
    }
    let tokens = record.worked.usage.input + record.worked.usage.output;
    let cost = cost_usd.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
    lines.push(format!("{tokens} {}{cost}", wording.of("tokens", "トークン")));
    lines.join("\n")
}

/// Returns the words that count what a list leaves out.
pub(super) fn and_more(count: usize, wording: Wording) -> String {
    if wording.is_japanese {
        format!("ほか{count}件")
    } else {
        format!("and {count} more")
    }
}

pub(super) fn cut(text: &str) -> String {
    let line = one_line(text);
    if line.chars().count() <= LONGEST_LINE {
        return line;
    }
    line.chars().take(LONGEST_LINE).chain(['…']).collect()
}
