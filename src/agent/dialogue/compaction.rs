//! Keeps the conversation within the window: at a threshold the model summarizes the older part.

use crate::agent::claim::Claim;
use crate::agent::dialogue;
use crate::agent::dialogue::ask;
use crate::agent::prompt;
use crate::agent::record::interruption::Interruption;
use crate::conversation::decode::without_thinking;
use crate::conversation::{Message, compaction};
use crate::journal::fact::Fact;
use crate::llm::chat::Chat;
use crate::llm::config::role::Role;

/// Percentage of the window at which the older part is summarized.
const THRESHOLD: u64 = 70;
/// Percentage of the window above which the request for a summary no longer fits behind the whole.
const FULL: u64 = 90;
/// Percentage of the window that the newest turns may keep.
const KEPT: u64 = 30;
/// Most bytes of a summary; a longer one would fill the window again.
const LONGEST_SUMMARY: usize = 16 * 1024;

/// Replaces the older part of the conversation by a summary when the window is nearly full. If no
/// usable summary comes, the conversation is unchanged and the next turn tries again.
pub(crate) async fn compact_if_needed(claim: &mut Claim, chat: &mut Chat) -> Result<(), Interruption> {
    if chat.fullness() < THRESHOLD {
        return Ok(());
    }
    let kept = claim.model(Role::Worker).window() * KEPT / 100;
    let Some(replaces) = compaction::older_part(chat.messages(), kept) else {
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
                text: format!("the conversation was not summed up: {}", failure.text),
            });
            return Ok(());
        }
        Err(interruption) => return Err(interruption),
    };
    let text = without_thinking(&reply.text);
    if text.trim().is_empty() || text.len() > LONGEST_SUMMARY {
        claim.note(Fact::Warned {
            text: "the model's summary of the conversation could not be used".to_owned(),
        });
        return Ok(());
    }
    let text = claim.services.redactor.clean(&prompt::summary(&text)).into_string();
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

/// Returns a copy of the conversation in which the summary fits the window: for the model of that
/// role, or for the worker's own if the conversation does not fit the other's.
fn with_room(claim: &Claim, chat: &Chat, replaces: usize) -> Chat {
    let beginning = chat.beginning(compaction::HEAD + replaces);
    let summarizer = claim.model(Role::Summarizer);
    let copies = [summarizer.aside(chat), summarizer.aside(&beginning)];
    let fitting = copies.into_iter().find(|copy| copy.fullness() < FULL);
    fitting.unwrap_or_else(|| {
        let worker = claim.model(Role::Worker);
        if chat.fullness() < FULL {
            worker.aside(chat)
        } else {
            worker.aside(&beginning)
        }
    })
}
