//! Identifies what is approved, by a SHA-256 of all of it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// Number of digits that people are shown, and write back.
const SHOWN: usize = 16;
/// Fewest digits of a beginning: fewer could be guessed, or produced again.
const FEWEST: usize = 8;
const ALL: usize = 64;

/// A SHA-256 as 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

/// A digest that is being computed.
#[derive(Debug, Clone, Default)]
pub struct Hashing(Sha256);

/// The beginning of a digest, as a person writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beginning(String);

/// The error for a text that is not the beginning of a digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a digest has {FEWEST} to {ALL} of the digits 0-9 and a-f")]
pub struct NotADigest;

impl Digest {
    /// Returns the digest of `parts`. The boundaries between the parts count.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hashing = Hashing::default();
        for part in parts {
            hashing.add(&(part.len() as u64).to_be_bytes());
            hashing.add(part);
        }
        hashing.finish()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the digits that people are shown.
    pub fn short(&self) -> &str {
        self.0.get(..SHOWN).unwrap_or(&self.0)
    }

    pub fn begins_with(&self, beginning: &Beginning) -> bool {
        self.0.starts_with(&beginning.0)
    }
}

impl Hashing {
    pub fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    pub fn finish(self) -> Digest {
        Digest(format!("{:x}", self.0.finalize()))
    }
}

impl fmt::Display for Beginning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl FromStr for Beginning {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let has_digits_only = text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if (FEWEST..=ALL).contains(&text.len()) && has_digits_only {
            return Ok(Self(text.to_ascii_lowercase()));
        }
        Err(NotADigest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_sha_256_and_known_by_its_beginning() {
        let mut hashing = Hashing::default();
        hashing.add(b"a");
        hashing.add(b"bc");
        let digest = hashing.finish();
        assert_eq!(
            digest.as_str(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
        assert_eq!(digest.short(), "ba7816bf8f01cfea");
        assert!(digest.begins_with(&"BA7816BF".parse().unwrap()));
        assert!(!digest.begins_with(&"ba7816b0".parse().unwrap()));
        assert_ne!(Digest::of(&[b"a", b"bc"]), Digest::of(&[b"ab", b"c"]));
    }

    #[test]
    fn what_is_too_short_too_long_or_no_digit_is_no_digest() {
        for text in ["", "ba7816b", "ba7816bg", "ba78 16bf", &"a".repeat(65)] {
            assert_eq!(text.parse::<Beginning>(), Err(NotADigest), "{text}");
        }
    }
}
