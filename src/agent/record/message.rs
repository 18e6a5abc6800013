//! What people say to a run: orders to the program, and words for the model.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::forge::{Comment, CommentKey};
use crate::task::command::{Command, Said};

/// A comment with the text it had when it was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeardComment {
    pub key: CommentKey,
    /// Another one means that the comment was edited since.
    pub fingerprint: Uuid,
}

impl HeardComment {
    pub fn of(comment: &Comment) -> Self {
        Self {
            key: comment.key,
            fingerprint: Uuid::new_v5(&Uuid::NAMESPACE_OID, comment.body.as_bytes()),
        }
    }

    /// Returns the mark of a comment whose command was obeyed while the words below it are still to
    /// be read.
    pub fn obeyed(comment: &Comment) -> Self {
        let whole = Self::of(comment).fingerprint;
        Self {
            key: comment.key,
            fingerprint: Uuid::new_v5(&whole, b"obeyed"),
        }
    }

    /// Tells whether the comment was heard before, with this text.
    pub fn is_in(&self, heard: &BTreeMap<CommentKey, Uuid>) -> bool {
        heard.get(&self.key) == Some(&self.fingerprint)
    }
}

/// What a person wants of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    pub command: Command,
    /// Who gave it, for people.
    pub by: String,
    pub origin: Origin,
}

impl Order {
    /// Tells whether there are words below the command. They are put into the mailbox apart.
    pub fn has_words(&self) -> bool {
        matches!(self.origin, Origin::AboveWords(_))
    }
}

/// Where an order came from, so that it is obeyed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Comment(HeardComment),
    /// The first line of a comment whose other lines are still to be read.
    AboveWords(HeardComment),
    /// The command line, through the store.
    Request(Uuid),
}

/// What a person wrote for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    pub heard: HeardComment,
    /// Without the command above the words.
    pub comment: Comment,
    /// The command that stands above them.
    pub below: Option<Command>,
    /// An earlier text of it was heard before.
    pub is_edit: bool,
}

impl UserMessage {
    /// Tells whether they answer a question of the model's: whoever asks for a pause does not want
    /// it to go on.
    pub fn is_answer(&self) -> bool {
        self.below != Some(Command::Pause)
    }
}

/// Returns what a comment tells the model; `None` where it is a command and nothing else.
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
