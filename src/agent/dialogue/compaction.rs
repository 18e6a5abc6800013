//! Keeps the conversation within the window: at a threshold the model summarizes the older part.

use crate::agent::claim::Claim;
use crate::agent::dialogue::ask;
use crate::agent::dialogue::room;
use crate::agent::dialogue::{self, ReplyForm};
use crate::agent::prompt;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction;
use crate::conversation::decode::{self, files};
use crate::conversation::{Message, Reply, compaction};
use crate::journal::fact::Fact;
use crate::llm::chat::Chat;
use crate::llm::config::role::Role;

/// Most bytes of a reply that is taken for a summary; what is longer was not meant as one.
const LONGEST_SUMMARY: usize = 16 * 1024;

/// Replaces the older part of the conversation by a summary when the window is nearly full. If no
/// usable summary comes, the conversation is unchanged and the next turn tries again.
pub(crate) async fn compact_if_needed(claim: &mut Claim, chat: &mut Chat) -> Result<(), Interruption> {
    if chat.fullness() < room::NEARLY_FULL {
        return Ok(());
    }
    let Some(replaces) = compaction::older_part(chat.messages(), room::tokens_of_newest(claim)) else {
        return Ok(());
    };
    // Asked in a copy, so that the request does not stay in the conversation; the unchanged
    // beginning keeps the provider's cache warm. If the whole no longer fits, the copy has only the
    // part that is to be replaced.
    let mut aside = with_room(claim, chat, replaces);
    aside.hold_to(None);
    aside.send_user_message(&claim.services.redactor.clean(prompt::SUMMARY_REQUEST));
    let reply = match ask::get_response(claim, &mut aside).await {
        Ok(reply) => reply,
        Err(Interruption::Failed(failure)) => {
            claim.note(Fact::Warned {
                text: format!("the conversation was not summed up: {}", failure.in_words()),
            });
            return Ok(());
        }
        Err(interruption) => return Err(interruption),
    };
    let Some(text) = summary_in(&reply, ReplyForm::of(claim)) else {
        claim.note(Fact::Warned {
            text: "the model's summary of the conversation could not be used".to_owned(),
        });
        return Ok(());
    };
    let redactor = &claim.services.redactor;
    let text = redaction::clean_cut(redactor, &text, room::bytes_of_summary(claim));
    let text = redactor.clean(&prompt::summary(&text)).into_string();
    let summary = Message::Summary { replaces, text };
    dialogue::save(claim, chat).await?;
    let record = claim.written_record()?;
    let store = &claim.services.store;
    store
        .append(&claim.lease, &record, chat.stored(), std::slice::from_ref(&summary))
        .await?;
    chat.compact(summary, Vec::new());
    claim.note(Fact::Compacted { messages: replaces });
    Ok(())
}

/// Returns the summary that a reply holds. There is none in a reply that was cut, nor in one that
/// goes on with the work by a call or a whole file, or ends it: it would take the place of all that
/// was said.
fn summary_in(reply: &Reply, form: ReplyForm) -> Option<String> {
    let text = decode::without_thinking(&reply.text);
    let has_files = form == ReplyForm::Files && !files::blocks_with_paths(&text).is_empty();
    let goes_on = has_files
        || !reply.calls.is_empty()
        || !reply.broken_calls.is_empty()
        || decode::turn(reply).is_ok_and(|turn| turn.done || !turn.calls.is_empty());
    let is_summary = !goes_on && !reply.cut && !text.is_empty() && text.len() <= LONGEST_SUMMARY;
    is_summary.then_some(text)
}

/// Returns a copy of the conversation in which the summary fits the window: for the model of that
/// role, or for the worker's own if the conversation does not fit the other's.
fn with_room(claim: &Claim, chat: &Chat, replaces: usize) -> Chat {
    let beginning = chat.beginning(compaction::HEAD + replaces);
    let summarizer = claim.model(Role::Summarizer);
    let copies = [summarizer.aside(chat), summarizer.aside(&beginning)];
    let fitting = copies.into_iter().find(|copy| copy.fullness() < room::FULL);
    fitting.unwrap_or_else(|| {
        let worker = claim.model(Role::Worker);
        if chat.fullness() < room::FULL {
            worker.aside(chat)
        } else {
            worker.aside(&beginning)
        }
    })
}
