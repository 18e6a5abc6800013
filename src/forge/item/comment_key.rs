//! Identifies comments, in texts and in the store.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Identifies a comment, whatever its text becomes; written `comment-12`, `inline-12` or
/// `review-12`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommentKey {
    pub kind: CommentKind,
    pub number: u64,
}

/// The kind of place that a comment is on; GitHub numbers each kind separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommentKind {
    /// The item itself.
    Comment,
    /// A line or a file of the changes.
    Inline,
    /// A review, as its own text. On GitLab a review has none, but it can request changes.
    Review,
}

/// The error for a text that is no key of a comment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not the key of a comment; write comment-12, inline-12 or review-12")]
pub struct NotACommentKey(String);

impl fmt::Display for CommentKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            CommentKind::Comment => "comment",
            CommentKind::Inline => "inline",
            CommentKind::Review => "review",
        };
        write!(formatter, "{kind}-{}", self.number)
    }
}

impl FromStr for CommentKey {
    type Err = NotACommentKey;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fault = || NotACommentKey(text.to_owned());
        let (kind, number) = text.split_once('-').ok_or_else(fault)?;
        let kind = match kind {
            "comment" => CommentKind::Comment,
            "inline" => CommentKind::Inline,
            "review" => CommentKind::Review,
            _ => return Err(fault()),
        };
        let number = number.parse().map_err(|_| fault())?;
        Ok(Self { kind, number })
    }
}

impl Serialize for CommentKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CommentKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_comment_key_is_read_back_as_it_was_written() {
        let keys = ["comment-12", "inline-1", "review-18446744073709551615"];
        let written = format!("{keys:?}");
        let read: Vec<CommentKey> = serde_json::from_str(&written).unwrap();
        assert_eq!(read.iter().map(ToString::to_string).collect::<Vec<_>>(), keys);
        assert_eq!(serde_json::to_string(&read).unwrap(), written.replace(", ", ","));
    }

    #[test]
    fn what_is_not_a_comment_key_is_refused_with_the_forms_that_are() {
        for text in ["", "12", "comment", "note-1", "Comment-1", "comment--1", "comment-1 "] {
            let error = text.parse::<CommentKey>().unwrap_err().to_string();
            assert!(error.contains("inline-12"), "{error}");
        }
    }
}
