//! Messages as a model gets them that takes no pictures: a sentence names those that there are.
//!
//! The conversation itself keeps the pictures, since its next reply may come from a model that
//! takes them.

use std::borrow::Cow;

use crate::conversation::Message;
use crate::picture;

/// Returns the messages with a sentence in the place of pictures.
pub(crate) fn render(messages: Cow<'_, [Message]>) -> Cow<'_, [Message]> {
    let has_pictures = |message: &Message| matches!(message, Message::User { pictures, .. } if !pictures.is_empty());
    if !messages.iter().any(has_pictures) {
        return messages;
    }
    let written = messages.iter().map(|message| match message {
        Message::User { text, pictures } if !pictures.is_empty() => Message::User {
            text: format!("{text}\n\n{}", picture::instead_of(pictures)),
            pictures: Vec::new(),
        },
        other => other.clone(),
    });
    Cow::Owned(written.collect())
}
