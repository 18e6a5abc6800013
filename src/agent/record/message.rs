//! Messages of people to a run: commands to the program, and text for the model.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::forge::{Comment, CommentKey};
use crate::task::command::{Command, Said};

/// The person who has the command line, as shown to people.
pub const OPERATOR: &str = "the operator";

/// A comment, identified together with the text it had when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeardComment {
    pub key: CommentKey,
    /// Digest of the text; a different one means that the comment was edited.
    pub fingerprint: Uuid,
}

impl HeardComment {
    pub fn of(comment: &Comment) -> Self {
        Self {
            key: comment.key,
            fingerprint: Uuid::new_v5(&Uuid::NAMESPACE_OID, comment.body.as_bytes()),
        }
    }

    /// Returns the entry for a comment whose command was executed while its remaining text is
    /// unread.
    pub fn obeyed(comment: &Comment) -> Self {
        let whole = Self::of(comment).fingerprint;
        Self {
            key: comment.key,
            fingerprint: Uuid::new_v5(&whole, b"obeyed"),
        }
    }

    /// Returns true if the comment was certainly written after an order. Comments are compared by
    /// their numbers, because the clocks of forge and worker differ; an order of the command line
    /// counts as given after all comments that there are when it is executed.
    pub fn is_after(&self, order: &Order) -> bool {
        match order.origin {
            OrderSource::Comment(heard) | OrderSource::AboveWords(heard) => {
                self.key.kind == heard.key.kind && self.key.number > heard.key.number
            }
            OrderSource::Request(_) => false,
        }
    }

    /// Returns true if the comment was read before with the same text.
    pub fn is_in(&self, heard: &BTreeMap<CommentKey, Uuid>) -> bool {
        heard.get(&self.key) == Some(&self.fingerprint)
    }
}

/// A comment that was dealt with while nobody worked on the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenComment {
    /// Digest of the text that it had.
    pub fingerprint: Uuid,
    /// Whether it has text for the model, which whoever resumes the run reads. Any other is of
    /// nobody who may steer the run, or not meant for it.
    pub has_words: bool,
}

/// A command that a person gave to the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub command: Command,
    /// Name of the person, as shown to people.
    pub by: String,
    pub origin: OrderSource,
}

impl Order {
    /// Returns true if text follows the command; the mailbox receives that text separately.
    pub fn has_words(&self) -> bool {
        matches!(self.origin, OrderSource::AboveWords(_))
    }
}

/// Source of an order, recorded so that it is executed only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OrderSource {
    Comment(HeardComment),
    /// The first line of a comment whose remaining text is still unread.
    AboveWords(HeardComment),
    /// The command line; the request is in the store.
    Request(Uuid),
}

/// Text that a person wrote for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    pub heard: HeardComment,
    /// The comment without the command in its first line.
    pub comment: Comment,
    /// The command in the first line of the comment.
    pub below: Option<Command>,
    /// Whether an earlier version of the comment was read before.
    pub is_edit: bool,
}

impl UserMessage {
    /// Returns true if the text answers a question of the model; text below a pause command does
    /// not, because that run should stay paused.
    pub fn is_answer(&self) -> bool {
        self.below != Some(Command::Pause)
    }

    /// Returns a comment of Alice's with this number and text, for tests.
    #[cfg(test)]
    pub(crate) fn of_alice(number: u64, body: &str) -> Self {
        let kind = crate::forge::CommentKind::Comment;
        let comment = Comment {
            key: CommentKey { kind, number },
            author: "alice".to_owned(),
            author_id: None,
            body: body.to_owned(),
            created_at: chrono::DateTime::UNIX_EPOCH,
            updated_at: chrono::DateTime::UNIX_EPOCH,
            place: None,
            thread: None,
            is_approval: false,
            is_bot: false,
        };
        Self {
            heard: HeardComment::of(&comment),
            comment,
            below: None,
            is_edit: false,
        }
    }
}

/// Returns the part of a comment meant for the model; `None` if it is only a command.
pub fn for_model(comment: &Comment) -> Option<Comment> {
    let said = Said::of(&comment.body);
    if said.command.is_some() && said.words.is_empty() {
        return None;
    }
    Some(Comment {
        body: said.words.into_owned(),
        ..comment.clone()
    })
}
