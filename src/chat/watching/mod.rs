//! The progress of runs that were asked for in a conversation: one text that is changed in Slack,
//! few texts in LINE; questions with buttons, or a digest to type; and how it ended.
//!
//! The texts are made from the store as it is, and facts only say when to look: so nothing is
//! missed, and a text that was made twice has the same id and the same words.

mod words; // how a run stands, and how it ended
mod question; // whether a plan or a result may go on

use std::time::Instant;

use uuid::Uuid;

use super::answers::buttons;
use super::approving::waiting::open_question;
use super::phrases::Phrase;
use super::sayings::{Parcel, id_of, packed, parts};
use super::services::ChatServices;
use super::watched::Watched;
use crate::agent::record::Record;
use crate::agent::record::saved::Unreadable;
use crate::journal::fact::Fact;
use crate::messenger::place::Messenger;
use crate::messenger::words::{Button, Words};
use crate::plain::one_line;
use crate::service::isolated;
use crate::store::{ChatWatch, FactFilter, NewSaying, StoreError};
use crate::task::id::RunId;
use question::{QuestionContext, question};
use words::{ending, other_wait, progress};

/// Most tasks that are looked at together.
const MOST: u32 = 500;

/// Looks at all tasks of which something happened. The first look is at every one: of what a killed
/// process did last there may be no fact.
pub(super) async fn look_at_all(services: &ChatServices, is_first: bool) -> Result<(), StoreError> {
    let newest = services.store().newest_fact().await?;
    for watch in services.store().chat_watches(MOST).await? {
        let Ok(mut watched) = serde_json::from_value::<Watched>(watch.document.clone()) else {
            services.store().unwatch_in_chat(&watch.task).await?;
            continue;
        };
        if !is_first {
            let seen = watched.seen.max(services.unreadable.seen(&watch.task, Instant::now()));
            if seen >= newest {
                continue;
            }
            let filter = FactFilter::OfTask(watch.task.clone());
            if services.store().facts(seen, &filter, 1).await?.is_empty() {
                continue;
            }
        }
        // Before the run is read: what happens meanwhile is looked at again.
        let before = std::mem::replace(&mut watched.seen, newest);
        match isolated(look(services, &watch, watched.clone(), before)).await {
            Ok(looked) => looked?,
            Err(broken) => {
                tracing::error!(task = %watch.task, "what became of it could not be told: {broken}");
                // The others are told all the same, and of this one when something else happens.
                let document = serde_json::to_value(&watched).unwrap_or_default();
                services.store().told_in_chat(&watch.task, &document).await?;
                services.note(Fact::Warned {
                    text: format!("{} was not told of {}: {broken}", watch.session, watch.task),
                });
            }
        }
    }
    Ok(())
}

/// Tells how the run of a task stands. What happened until the fact `before` is told already.
async fn look(services: &ChatServices, watch: &ChatWatch, mut watched: Watched, before: u64) -> Result<(), StoreError> {
    let Some(run) = services.store().runs(Some(&watch.task), 1).await?.pop() else {
        return Ok(());
    };
    let record = match Record::read(&run) {
        Ok(record) => record,
        Err(unreadable) => {
            // Another process that can read it has it all to tell.
            let newest = std::mem::replace(&mut watched.seen, before);
            tell_unreadable(services, watch, watched, &unreadable).await?;
            if services.unreadable.note(&watch.task, newest, Instant::now()) {
                let reason = one_line(&unreadable.to_string());
                tracing::warn!(task = %watch.task, "its conversation cannot be told how it stands: {reason}");
            }
            return Ok(());
        }
    };
    services.unreadable.forget(&watch.task);
    let cost = record.cost(services.service.prices());
    if watched.place.messenger.edits() {
        let text = progress(&run, &record, &watched);
        let id = id_of(&format!("progress {} {}", watch.task, watch.session));
        services
            .store()
            .change_saying(&parcel(services, id, &watched, &text, QuestionEnd::default()))
            .await?;
    }
    if let Some(waiting) = open_question(services, run.state, &record) {
        let digest = waiting.digest.short().to_owned();
        // Another question may have the digest of an earlier one: of a plan that was made again
        // after a denial, for instance.
        let id = waiting.id.to_string();
        if !watched.asked.iter().any(|asked| [&id, &digest].contains(&asked)) {
            let asked = QuestionContext {
                url: &watched.url,
                digest: &digest,
                cost_usd: cost.filter(|cost| *cost > 0.0),
                wording: watched.wording(),
            };
            let text = question(&record, &asked);
            let end = QuestionEnd {
                buttons: buttons(run.id, &digest, watched.wording()),
                asks: Some((run.id, waiting.id)),
                part_of: None,
            };
            let name = format!("question {} {id} {}", watch.task, watch.session);
            let said = parcels(services, &name, &watched, &text, &end);
            services.store().say_in_chat(&said).await?;
            watched.asked.push(id);
        }
    } else if let Some((at, wait)) = other_wait(&run, &record) {
        // A run may wait again for the same reason, in the same words.
        let name = format!("{} {wait}", at.to_rfc3339());
        if !watched.waits.contains(&name) {
            let text = format!("✋ {wait}\n{}", watched.url);
            let id = id_of(&format!("wait {} {} {name}", watch.task, watch.session));
            services
                .store()
                .say_in_chat(&[parcel(services, id, &watched, &text, QuestionEnd::default())])
                .await?;
            watched.waits.push(name);
        }
    }
    if run.state.is_final() {
        let text = ending(&run, &record, &watched, cost);
        let id = id_of(&format!("end {} {} {}", watch.task, watch.session, run.id));
        services
            .store()
            .say_in_chat(&[parcel(services, id, &watched, &text, QuestionEnd::default())])
            .await?;
        return services.store().unwatch_in_chat(&watch.task).await;
    }
    let document = serde_json::to_value(&watched).unwrap_or_default();
    services.store().told_in_chat(&watch.task, &document).await
}

/// Tells once that it cannot be told how a run stands.
async fn tell_unreadable(
    services: &ChatServices,
    watch: &ChatWatch,
    mut watched: Watched,
    unreadable: &Unreadable,
) -> Result<(), StoreError> {
    let name = format!("unreadable {}", unreadable.run);
    if watched.waits.contains(&name) {
        return Ok(());
    }
    let told = Phrase::Unreadable(&unreadable.to_string()).in_words(watched.is_japanese);
    let text = format!("{told}\n{}", watched.url);
    let id = id_of(&format!("{name} {}", watch.session));
    services
        .store()
        .say_in_chat(&[parcel(services, id, &watched, &text, QuestionEnd::default())])
        .await?;
    watched.waits.push(name);
    let document = serde_json::to_value(&watched).unwrap_or_default();
    services.store().told_in_chat(&watch.task, &document).await
}

/// The question that parts of a message belong to. The last part has the buttons below it, and the
/// question is whole with it.
#[derive(Debug, Clone, Default)]
struct QuestionEnd {
    buttons: Vec<Button>,
    asks: Option<(RunId, Uuid)>,
    part_of: Option<(RunId, Uuid)>,
}

/// Returns a question in as many parts as its messenger needs.
fn parcels(services: &ChatServices, name: &str, watched: &Watched, text: &str, end: &QuestionEnd) -> Vec<NewSaying> {
    let clean = services.service.clean(text);
    let parts = parts(watched.place.messenger, clean.as_str());
    let last = parts.len().saturating_sub(1);
    let numbered = parts.into_iter().enumerate().map(|(place, text)| {
        let id = match place {
            0 => id_of(name),
            _ => id_of(&format!("{name} part {place}")),
        };
        let end = if place == last {
            end.clone()
        } else {
            QuestionEnd {
                part_of: end.asks,
                ..QuestionEnd::default()
            }
        };
        parcel(services, id, watched, &text, end)
    });
    numbered.collect()
}

fn parcel(services: &ChatServices, id: Uuid, watched: &Watched, text: &str, end: QuestionEnd) -> NewSaying {
    let parcel = Parcel {
        place: watched.place.clone(),
        words: Words {
            text: services.service.clean(text).into_string(),
            // Only Slack has buttons; elsewhere the digest is typed.
            buttons: if watched.place.messenger == Messenger::Slack {
                end.buttons
            } else {
                Vec::new()
            },
        },
        reply: None,
        asks: end.asks,
        part_of: end.part_of,
    };
    packed(id, &parcel)
}
