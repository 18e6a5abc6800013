//! The conversation of a run with its model: what is said in it, and how it is saved.

use super::claim::Claim;
use super::setback::Setback;
use super::stored;
use crate::conversation::Message;
use crate::llm::chat::Chat;

/// The conversation that is open in this process.
#[derive(Default)]
pub struct Dialogue {
    /// `None` before the conversation is opened, and while a stage has it in hand.
    pub(super) chat: Option<Chat>,
}

/// Stores what was said since the last call, and what it has cost. Nothing is stored before the
/// first reply: a conversation that the provider refused whole is begun again.
pub(super) async fn save(claim: &mut Claim, chat: &mut Chat) -> Result<(), Setback> {
    let has_reply = chat
        .messages()
        .iter()
        .any(|message| matches!(message, Message::Assistant { .. }));
    if has_reply {
        let mut unsaved = chat.unsaved();
        for message in &mut unsaved {
            stored::clean_message(&claim.services.redactor, message);
        }
        let record = claim.written_record()?;
        claim.services.store.append(&claim.lease, &record, &unsaved).await?;
    }
    Ok(())
}

/// Says something of the program's own to the model.
pub(super) fn tell(claim: &Claim, chat: &mut Chat, text: &str) {
    chat.send_user_message(&claim.services.redactor.clean(text));
}
