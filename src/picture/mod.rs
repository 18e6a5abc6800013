//! Pictures that people send, as models get them.
//!
//! Guarantees: a [`Picture`] was decoded and written anew, so that it holds what is seen and
//! nothing else: no place, time, name or camera, no text in its chunks, and nothing behind its end.
//! Its kind is what its bytes are, whatever a name or a header says. Its size is bounded, and so is
//! the memory that it takes to make it. Fetching is for others.

mod links; // the pictures in a text
mod preparing; // from strangers' bytes to a picture

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::plain::one_line;

pub use links::{is_attached, links};
pub use preparing::{Unusable, prepared};

/// Most bytes of a picture as it comes.
pub const LARGEST: usize = 10 * 1024 * 1024;
/// Most pictures that are shown with one message.
const MOST: usize = 5;
/// Most characters of a name.
const LONGEST_NAME: usize = 80;

/// A picture without metadata.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Picture {
    /// The name that people know it by, on one line.
    pub name: String,
    pub kind: Kind,
    pub width: u32,
    pub height: u32,
    /// The picture that it was made from.
    pub original: Original,
    #[serde(serialize_with = "as_base64", deserialize_with = "from_base64")]
    bytes: Arc<[u8]>,
}

/// A picture as it came, for the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Original {
    /// SHA-256 of its bytes, in hexadecimal.
    pub digest: String,
    pub bytes: u64,
    pub kind: Kind,
}

/// The kinds of pictures that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    #[serde(rename = "image/png")]
    Png,
    #[serde(rename = "image/jpeg")]
    Jpeg,
    #[serde(rename = "image/gif")]
    Gif,
    #[serde(rename = "image/webp")]
    Webp,
}

impl Kind {
    /// Returns the media type.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Gif => "image/gif",
            Self::Webp => "image/webp",
        }
    }

    /// Returns the ending of names of files.
    pub const fn ending(self) -> &'static str {
        match self {
            Self::Png => "png",
            Self::Jpeg => "jpg",
            Self::Gif => "gif",
            Self::Webp => "webp",
        }
    }
}

impl Picture {
    /// Returns the picture's bytes in base64, as every provider takes them.
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.bytes)
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Estimates its tokens: about one for 750 pixels, which is more than most models count.
    pub fn estimated_tokens(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height) / 750 + 85
    }

    /// Names the picture in a sentence.
    pub fn describe(&self) -> String {
        format!(
            "{} ({}, {} × {})",
            self.name,
            self.original.kind.as_str(),
            self.width,
            self.height
        )
    }
}

/// Leaves the bytes out: they say nothing to a reader.
impl fmt::Debug for Picture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.describe())
    }
}

/// Returns a name on one line, short, and without signs that are not seen.
pub fn named(name: &str) -> String {
    let seen: String = name
        .chars()
        .map(|sign| if sign.is_control() { ' ' } else { sign })
        .collect();
    let line = one_line(&seen);
    let short: String = line.chars().take(LONGEST_NAME).collect();
    if short.is_empty() {
        "a picture".to_owned()
    } else {
        short
    }
}

/// Returns why a model is not shown one more picture of a message, of which it is shown `shown`;
/// `None` if it is.
pub fn refusal(takes_pictures: bool, shown: usize) -> Option<String> {
    if !takes_pictures {
        return Some("the model takes no pictures".to_owned());
    }
    (shown >= MOST).then(|| format!("no more than {MOST} are shown"))
}

/// Returns the sentence that a model gets in the place of pictures that it does not take.
pub fn instead_of(pictures: &[Picture]) -> String {
    let named: Vec<String> = pictures.iter().map(Picture::describe).collect();
    format!(
        "[Not shown to you, because you take no pictures: {}. Say so where the answer depends on it.]",
        named.join(", ")
    )
}

fn as_base64<S: Serializer>(bytes: &Arc<[u8]>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}

fn from_base64<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<[u8]>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = STANDARD.decode(text).map_err(serde::de::Error::custom)?;
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_shown_as_many_as_it_takes() {
        assert_eq!(refusal(true, MOST - 1), None);
        assert_eq!(refusal(true, MOST).as_deref(), Some("no more than 5 are shown"));
        let takes_none = refusal(false, MOST);
        assert_eq!(takes_none.as_deref(), Some("the model takes no pictures"));
    }
}
