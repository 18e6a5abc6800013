//! Documents to be judged: a text, and its parts by name.

use std::collections::BTreeSet;

use crate::approval::digest::Digest;

/// Digits of a part's fingerprint.
const FINGERPRINT: usize = 12;

/// A document to be judged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Document {
    pub text: String,
    /// Its parts by name: the lines of a plan, the files of a difference.
    parts: Vec<(String, String)>,
}

impl Document {
    pub fn new(text: String, parts: Vec<(String, String)>) -> Self {
        Self { text, parts }
    }

    /// Returns a document whose lines are its parts.
    pub fn of_lines(text: &str) -> Self {
        let lines = text.lines().map(|line| (line.to_owned(), String::new()));
        Self::new(text.to_owned(), lines.collect())
    }

    pub fn digest(&self) -> Digest {
        Digest::of(&[self.text.as_bytes()])
    }

    /// Returns the fingerprints of the parts.
    pub(super) fn fingerprints(&self) -> BTreeSet<String> {
        self.parts.iter().map(fingerprint).collect()
    }

    /// Returns the names of the parts that are not among `earlier` ones.
    pub(super) fn changed_since(&self, earlier: &BTreeSet<String>) -> Vec<&str> {
        let changed = self.parts.iter().filter(|part| !earlier.contains(&fingerprint(part)));
        changed.map(|(name, _)| name.as_str()).collect()
    }
}

fn fingerprint((name, text): &(String, String)) -> String {
    let digest = Digest::of(&[name.as_bytes(), text.as_bytes()]);
    digest.as_str().chars().take(FINGERPRINT).collect()
}
