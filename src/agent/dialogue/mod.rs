//! The conversation of a run with its model: what is said in it, and how it is saved.

pub(crate) mod ask; // one question to the model, until it can be read
pub(crate) mod control_tools; // tools that talk to the program itself
pub(crate) mod policy; // what rules refuse to the model
pub(crate) mod network_refusals; // hosts that the container could not reach
pub(crate) mod tool_calls; // the tool calls of one reply
pub(crate) mod compaction; // a summary in the place of the older part
pub(crate) mod replanning; // a better plan

use crate::agent::claim::Claim;
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction;
use crate::conversation::Message;
use crate::llm::chat::Chat;

/// The conversation that is open in this process.
#[derive(Default)]
pub(crate) struct Dialogue {
    /// `None` before the conversation is opened, and while a stage has it in hand.
    pub(crate) chat: Option<Chat>,
}

/// Stores what was said since the last call, and what it has cost. Nothing is stored before the
/// first reply: a conversation that the provider refused whole is begun again.
pub(crate) async fn save(claim: &mut Claim, chat: &mut Chat) -> Result<(), Interruption> {
    let has_reply = chat
        .messages()
        .iter()
        .any(|message| matches!(message, Message::Assistant { .. }));
    if has_reply {
        let mut unsaved = chat.unsaved();
        for message in &mut unsaved {
            redaction::clean_message(&claim.services.redactor, message);
        }
        let record = claim.written_record()?;
        claim.services.store.append(&claim.lease, &record, &unsaved).await?;
    }
    Ok(())
}

/// Says something of the program's own to the model.
pub(crate) fn tell(claim: &Claim, chat: &mut Chat, text: &str) {
    chat.send_user_message(&claim.services.redactor.clean(text));
}
