//! What people say to a run: orders to the program, and words for the model.

use std::collections::BTreeMap;

use uuid::Uuid;

use crate::forge::{Comment, CommentKey};
use crate::task::command::Command;

/// A comment with the text it had when it was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heard {
    pub key: CommentKey,
    /// Another one means that the comment was edited since.
    pub fingerprint: Uuid,
}

impl Heard {
    pub fn of(comment: &Comment) -> Self {
        Self {
            key: comment.key,
            fingerprint: Uuid::new_v5(&Uuid::NAMESPACE_OID, comment.body.as_bytes()),
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

/// Where an order came from, so that it is obeyed once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    Comment(Heard),
    /// The command line, through the store.
    Request(Uuid),
}

/// What a person wrote for the model.
#[derive(Debug, Clone, PartialEq)]
pub struct Words {
    pub heard: Heard,
    pub comment: Comment,
    /// An earlier text of it was heard before.
    pub is_edit: bool,
}
