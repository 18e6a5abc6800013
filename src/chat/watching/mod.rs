//! The progress of runs that were asked for in a conversation: one text that is changed in Slack,
//! few texts in LINE; questions with buttons, or a digest to type; and how it ended.
//!
//! The texts are made from the store as it is, and facts only say when to look: so nothing is
//! missed, and a text that was made twice has the same id and the same words.

mod question; // whether a plan or a result may go on

use chrono::{DateTime, Utc};
use question::{QuestionContext, Wording, question};
use serde::{Deserialize, Serialize};

use super::approving::{buttons, waits_for};
use super::desk::Desk;
use super::sayings::{Parcel, id_of, packed, parts};
use crate::agent::record::{PausedBy, Record};
use crate::journal::fact::Fact;
use crate::messenger::place::{Messenger, Place};
use crate::messenger::words::{Button, Words};
use crate::service::isolated;
use crate::store::{ChatWatch, FactFilter, NewSaying, Run, StoreError};
use crate::task::state::State;

/// Most tasks that are looked at together.
const MOST: u32 = 500;
/// Most steps of a plan that are shown.
const MOST_STEPS: usize = 15;
/// Most characters of a line that a model wrote.
const LONGEST_LINE: usize = 200;

/// A task that a conversation follows, and how much of it was told there.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Watched {
    pub(super) place: Place,
    /// The address of the issue.
    pub(super) url: String,
    pub(super) is_japanese: bool,
    /// The number of the newest fact that was looked at.
    pub(super) seen: u64,
    /// The digests that people in the conversation were asked to approve.
    pub(super) asked: Vec<String>,
    /// The other waits that people in the conversation were told of, each with its time.
    pub(super) waits: Vec<String>,
}

impl Watched {
    pub(super) fn default_at(place: Place) -> Self {
        Self {
            place,
            url: String::new(),
            is_japanese: false,
            seen: 0,
            asked: Vec::new(),
            waits: Vec::new(),
        }
    }
}

/// Looks at all tasks of which something happened.
pub(super) async fn look_at_all(desk: &Desk) -> Result<(), StoreError> {
    let newest = desk.store().newest_fact().await?;
    for watch in desk.store().chat_watches(MOST).await? {
        let Ok(mut watched) = serde_json::from_value::<Watched>(watch.document.clone()) else {
            desk.store().unwatch_in_chat(&watch.task).await?;
            continue;
        };
        if watched.seen >= newest {
            continue;
        }
        let filter = FactFilter::OfTask(watch.task.clone());
        if desk.store().facts(watched.seen, &filter, 1).await?.is_empty() {
            continue;
        }
        // Before the run is read: what happens meanwhile is looked at again.
        watched.seen = newest;
        match isolated(look(desk, &watch, watched.clone())).await {
            Ok(looked) => looked?,
            Err(broken) => {
                tracing::error!(task = %watch.task, "what became of it could not be told: {broken}");
                // The others are told all the same, and of this one when something else happens.
                let document = serde_json::to_value(&watched).unwrap_or_default();
                desk.store().told_in_chat(&watch.task, &document).await?;
                desk.note(Fact::Warned {
                    text: format!("{} was not told of {}: {broken}", watch.session, watch.task),
                });
            }
        }
    }
    Ok(())
}

async fn look(desk: &Desk, watch: &ChatWatch, mut watched: Watched) -> Result<(), StoreError> {
    let Some(run) = desk.store().runs(Some(&watch.task), 1).await?.pop() else {
        return Ok(());
    };
    let record = Record::read(&run).unwrap_or_default();
    if watched.place.messenger.edits() {
        let text = progress(&run, &record, &watched);
        let id = id_of(&format!("progress {} {}", watch.task, watch.session));
        desk.store()
            .change_saying(&parcel(desk, id, &watched, &text, Vec::new()))
            .await?;
    }
    if let Some(digest) = waits_for(desk, &run) {
        let digest = digest.short().to_owned();
        if !watched.asked.contains(&digest) {
            let asked = QuestionContext {
                url: &watched.url,
                digest: &digest,
                cost_usd: record.cost(desk.service.prices()).filter(|cost| *cost > 0.0),
                wording: Wording {
                    is_japanese: watched.is_japanese,
                },
            };
            let text = question(&record, &asked);
            let below = buttons(run.id, &digest, watched.is_japanese);
            let name = format!("question {} {digest} {}", watch.task, watch.session);
            let said = parcels(desk, &name, &watched, &text, &below);
            desk.store().say_in_chat(&said).await?;
            watched.asked.push(digest);
        }
    } else if let Some((at, wait)) = other_wait(&run, &record) {
        // A run may wait again for the same reason, in the same words.
        let name = format!("{} {wait}", at.to_rfc3339());
        if !watched.waits.contains(&name) {
            let text = format!("✋ {wait}\n{}", watched.url);
            let id = id_of(&format!("wait {} {} {name}", watch.task, watch.session));
            desk.store()
                .say_in_chat(&[parcel(desk, id, &watched, &text, Vec::new())])
                .await?;
            watched.waits.push(name);
        }
    }
    if run.state.is_final() {
        let text = ending(desk, &run, &record, &watched);
        let id = id_of(&format!("end {} {} {}", watch.task, watch.session, run.id));
        desk.store()
            .say_in_chat(&[parcel(desk, id, &watched, &text, Vec::new())])
            .await?;
        return desk.store().unwatch_in_chat(&watch.task).await;
    }
    let document = serde_json::to_value(&watched).unwrap_or_default();
    desk.store().told_in_chat(&watch.task, &document).await
}

/// Returns a text in as many parts as its messenger needs, with the buttons below the last.
fn parcels(desk: &Desk, name: &str, watched: &Watched, text: &str, buttons: &[Button]) -> Vec<NewSaying> {
    let clean = desk.service.clean(text);
    let parts = parts(watched.place.messenger, clean.as_str());
    let last = parts.len().saturating_sub(1);
    let numbered = parts.into_iter().enumerate().map(|(place, text)| {
        let id = match place {
            0 => id_of(name),
            _ => id_of(&format!("{name} part {place}")),
        };
        let below = if place == last { buttons.to_vec() } else { Vec::new() };
        parcel(desk, id, watched, &text, below)
    });
    numbered.collect()
}

fn parcel(desk: &Desk, id: uuid::Uuid, watched: &Watched, text: &str, buttons: Vec<Button>) -> NewSaying {
    let parcel = Parcel {
        place: watched.place.clone(),
        words: Words {
            text: desk.service.clean(text).into_string(),
            // Only Slack has buttons; elsewhere the digest is typed.
            buttons: if watched.place.messenger == Messenger::Slack {
                buttons
            } else {
                Vec::new()
            },
        },
        reply: None,
    };
    packed(id, &parcel)
}

/// Returns the text that is changed as the work goes on.
fn progress(run: &Run, record: &Record, watched: &Watched) -> String {
    let mut lines = vec![
        format!("{} {}", sign(run.state), watched.url),
        state(run.state, watched.is_japanese),
    ];
    if let Some(plan) = &record.planned.plan {
        let steps = &plan.task_decomposition.subtasks;
        lines.extend(steps.iter().take(MOST_STEPS).map(|step| {
            let is_finished = run.state == State::Done || record.worked.finished_subtasks.contains(&step.id);
            format!("{} {}", if is_finished { "☑" } else { "☐" }, cut(&step.description))
        }));
        let more = steps.len().saturating_sub(MOST_STEPS);
        if more > 0 {
            lines.push(and_more(more, watched.is_japanese));
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

fn state(state: State, is_japanese: bool) -> String {
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
    if is_japanese { japanese } else { english }.to_owned()
}

/// Returns what a run waits for that is no approval, and since when.
fn other_wait(run: &Run, record: &Record) -> Option<(DateTime<Utc>, String)> {
    let paused = record.waiting.paused.as_ref().filter(|_| run.state.is_set_aside())?;
    match &paused.by {
        PausedBy::Question(text) | PausedBy::Limit(text) => Some((paused.at, cut(text))),
        _ => None,
    }
}

/// Returns how it ended: the verdict, the link and the cost.
fn ending(desk: &Desk, run: &Run, record: &Record, watched: &Watched) -> String {
    let ja = watched.is_japanese;
    let verdict = match (run.state, record.is_verified()) {
        (State::Done, _) if record.delivered.change.is_none() => {
            if ja {
                "✅ 完了しました。変更はありません"
            } else {
                "✅ Done; nothing had to be changed"
            }
        }
        (State::Done, true) if !record.is_checked() => {
            if ja {
                "☑️ 完了しましたが、検証は何も行われていません"
            } else {
                "☑️ Done, and nothing was checked"
            }
        }
        (State::Done, true) => {
            if ja {
                "✅ 完了し、検証に通りました"
            } else {
                "✅ Done and verified"
            }
        }
        (State::Done, false) => {
            if ja {
                "⚠️ 完了しましたが、検証に通っていない下書きです"
            } else {
                "⚠️ Done, but not verified: it is a draft"
            }
        }
        (State::Stopped, _) => {
            if ja {
                "⏹ 中止しました"
            } else {
                "⏹ Stopped"
            }
        }
        _ => {
            if ja {
                "❌ 失敗しました"
            } else {
                "❌ Failed"
            }
        }
    };
    let mut lines = vec![verdict.to_owned()];
    if let Some(change) = &record.delivered.change {
        lines.push(change.url.clone());
    }
    lines.push(watched.url.clone());
    if let Some(summary) = &record.worked.summary {
        lines.push(summary.chars().take(1_000).collect());
    }
    if let Some(failure) = &record.failure {
        lines.push(cut(&failure.in_words()));
    }
    let tokens = record.worked.usage.input + record.worked.usage.output;
    let cost = record.cost(desk.service.prices());
    let cost = cost.map_or_else(String::new, |cost| format!(" · ${cost:.2}"));
    lines.push(format!("{tokens} {}{cost}", if ja { "トークン" } else { "tokens" }));
    lines.join("\n")
}

/// Returns the words that count what a list leaves out.
fn and_more(count: usize, is_japanese: bool) -> String {
    if is_japanese {
        format!("ほか{count}件")
    } else {
        format!("and {count} more")
    }
}

fn cut(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= LONGEST_LINE {
        return line;
    }
    line.chars().take(LONGEST_LINE).chain(['…']).collect()
}
