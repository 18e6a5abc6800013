//! Facts about a picture that somebody sent. The picture itself is never here.

use serde::{Deserialize, Serialize};

use crate::picture::Picture;

/// A picture that was to be shown to a model, whether it was or not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Shown {
    /// Where it was sent: a conversation, or an item.
    pub place: String,
    /// Who sent it.
    pub from: String,
    pub name: String,
    /// SHA-256 of the bytes as they came; empty where none came.
    pub digest: String,
    /// Number of bytes as they came.
    pub bytes: u64,
    /// Their media type, such as `image/png`.
    pub kind: String,
    pub width: u32,
    pub height: u32,
    /// The bytes that the model gets, without metadata.
    pub shown_bytes: u64,
    /// The model's name in the configuration, and the role that it is asked in.
    pub model: String,
    pub role: String,
    pub is_shown: bool,
    /// Why it is not shown.
    pub reason: String,
}

/// Pictures of a question that had no answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Unanswered {
    /// The conversation.
    pub place: String,
    /// SHA-256 of the bytes of each as they came.
    pub digests: Vec<String>,
    /// The bytes that were sent to the model, of all together.
    pub shown_bytes: u64,
    /// Why there is no answer.
    pub reason: String,
}

impl Shown {
    /// Adds what is known of a picture that came.
    pub fn take(&mut self, picture: &Picture) {
        self.digest.clone_from(&picture.original.digest);
        self.bytes = picture.original.bytes;
        picture.original.kind.as_str().clone_into(&mut self.kind);
        self.width = picture.width;
        self.height = picture.height;
        self.shown_bytes = picture.bytes().len() as u64;
    }
}
