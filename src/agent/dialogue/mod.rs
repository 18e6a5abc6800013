//! The conversation of a run with its model, and how it is saved.

pub(crate) mod room; // what fits the window
pub(crate) mod health; // servers of local models, before the work and when they fail
pub(crate) mod ask; // a request that is repeated until the reply can be parsed
pub(crate) mod control_tools; // tools that control the run itself
pub(crate) mod policy; // tool calls that rules refuse
pub(crate) mod changes; // what a command changed in the project
pub(crate) mod network_refusals; // hosts that the container was refused
pub(crate) mod tool_calls; // the tool calls of one reply
pub(crate) mod compaction; // replaces the older part by a summary
pub(crate) mod replanning; // revision of the plan
pub(crate) mod attempts; // what the model tried lately
pub(crate) mod stuck; // a model that repeats itself, or whose calls all fail

use crate::agent::claim::Claim;
use crate::agent::prompt::{self, shown};
use crate::agent::record::interruption::Interruption;
use crate::agent::record::redaction;
use crate::conversation::decode::files::Shown;
use crate::conversation::decode::{self, Unreadable};
use crate::conversation::{Message, Reply, Turn};
use crate::llm::chat::Chat;
use crate::llm::config::Edits;

/// The conversation as far as it is open in this process.
#[derive(Default)]
pub(crate) struct Dialogue {
    /// `None` before the conversation is opened, and while a stage has taken it.
    pub(crate) chat: Option<Chat>,
}

/// Saves new messages and their usage. Nothing is saved before the first reply, so that a
/// conversation that the provider rejects as a whole starts again.
pub(crate) async fn save(claim: &mut Claim, chat: &mut Chat) -> Result<(), Interruption> {
    if is_begun(chat) {
        let mut unsaved = chat.unsaved().to_vec();
        for message in &mut unsaved {
            redaction::clean_message(&claim.services.redactor, message);
        }
        let record = claim.written_record()?;
        let store = &claim.services.store;
        store.append(&claim.lease, &record, chat.stored(), &unsaved).await?;
        chat.note_saved();
    }
    Ok(())
}

/// Returns true if the model has replied at least once, from when on the conversation is saved.
pub(crate) fn is_begun(chat: &Chat) -> bool {
    // A summary takes the place of messages that were saved.
    let mut messages = chat.messages().iter();
    messages.any(|message| matches!(message, Message::Assistant { .. } | Message::Summary { .. }))
}

/// How the worker's replies are written and read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReplyForm {
    /// Native calls.
    Native,
    /// The reply is one JSON object.
    Json,
    /// Whole files as text, see [`decode::files`]; the work ends with them.
    Files,
}

impl ReplyForm {
    /// Returns the form for the model that works on this run: whole files as text where they are
    /// wanted, or exact edits have led nowhere, and the model takes no native calls. A small model
    /// breaks a file that it has to write as a string in JSON.
    pub(crate) fn of(claim: &Claim) -> Self {
        let is_whole = claim.services.settings.edits == Edits::Whole || claim.record.worked.whole_files;
        match claim.record.worked.native {
            Some(true) => Self::Native,
            Some(false) if is_whole => Self::Files,
            Some(false) | None => Self::Json,
        }
    }

    /// Reads a reply in a conversation in which the files `shown` were.
    ///
    /// # Errors
    /// If it cannot be read, in words for the model.
    pub(crate) fn turn(self, reply: &Reply, shown: &[Shown]) -> Result<Turn, Unreadable> {
        match self {
            Self::Native => decode::turn_with_tools(reply),
            Self::Json => decode::turn(reply),
            Self::Files => decode::files::turn(reply, shown),
        }
    }

    /// Returns the files that the first message shows, of which a reply may hold pieces.
    pub(crate) fn shown(self, claim: &Claim, messages: &[Message]) -> Vec<Shown> {
        let first = messages.iter().find_map(|message| match message {
            Message::User { text, .. } => Some(text),
            Message::System { .. } | Message::Assistant { .. } | Message::Summary { .. } | Message::Results { .. } => {
                None
            }
        });
        match (self, first) {
            (Self::Files, Some(text)) => shown::files(&prompt::fence(claim.lease.run), text),
            _ => Vec::new(),
        }
    }
}

/// Adds a message of the program itself to the conversation.
pub(crate) fn tell(claim: &Claim, chat: &mut Chat, text: &str) {
    chat.send_user_message(&claim.services.redactor.clean(text));
}
