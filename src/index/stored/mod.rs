//! How the index keeps what it knows, as bytes: the places of a file, the places of a word, the
//! paths of a commit.
//!
//! Rows of a database cost more than what is in them here: a word stands in a place with one or two
//! bytes, a place has some ten and its name. What cannot be read is `None`, since the file may be
//! damaged, and is then made anew.

mod bytes; // numbers and texts as bytes
pub(super) mod places; // the places of a file
pub(super) mod postings; // the places of words, in blocks
pub(super) mod paths; // the files of a commit

pub(super) use bytes::{digest, from_hex, to_hex};
