//! Patterns that are compiled when a text first needs them.
//!
//! Twenty compiled patterns take megabytes, and a run with nothing to do reads texts in which none
//! of them could match. So each names its cues, words of which one is in everything it matches; one
//! search finds all cues.

use std::sync::OnceLock;

use aho_corasick::AhoCorasick;
use regex::{Regex, RegexBuilder};

use super::automaton;

/// Bytes that one pattern may cache in each thread. The default is eight times as much, and twenty
/// patterns fill that in a service that runs for weeks.
const MOST_REMEMBERED: usize = 256 * 1024;

/// Patterns and their cues.
pub(super) struct Cued {
    cues: AhoCorasick,
    /// The index of its pattern, for each cue.
    owners: Vec<usize>,
    patterns: Vec<Pattern>,
}

struct Pattern {
    text: &'static str,
    built: OnceLock<Regex>,
}

impl Cued {
    /// Takes patterns with their cues, whose case is ignored, and compiles none.
    pub(super) fn new(patterns: impl IntoIterator<Item = (&'static [&'static str], &'static str)>) -> Self {
        let mut cues: Vec<&str> = Vec::new();
        let mut owners = Vec::new();
        let mut all = Vec::new();
        for (words, text) in patterns {
            owners.extend(words.iter().map(|_| all.len()));
            cues.extend(words);
            let built = OnceLock::new();
            all.push(Pattern { text, built });
        }
        Self {
            cues: automaton(&cues, true),
            owners,
            patterns: all,
        }
    }

    /// Returns each pattern that may match somewhere in `text`, with its index.
    pub(super) fn patterns_for(&self, text: &str) -> impl Iterator<Item = (usize, &Regex)> {
        let mut is_cued = vec![false; self.patterns.len()];
        for found in self.cues.find_overlapping_iter(text) {
            is_cued[self.owners[found.pattern().as_usize()]] = true;
        }
        let all = self.patterns.iter().enumerate().zip(is_cued);
        let cued = all.filter(|(_, is_cued)| *is_cued);
        cued.map(|((at, pattern), _)| (at, pattern.get()))
    }
}

impl Pattern {
    fn get(&self) -> &Regex {
        self.built.get_or_init(|| {
            let built = RegexBuilder::new(self.text).dfa_size_limit(MOST_REMEMBERED).build();
            #[expect(clippy::expect_used, reason = "the patterns are constant, and tests build every one")]
            built.expect("the pattern is valid")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_a_cue_is_searched_and_built() {
        let cued = Cued::new([
            (["red", "reddish"].as_slice(), "reds?"),
            (&["blue"], "blue"),
            (&["dish"], "dish"),
        ]);
        let matching = |text| cued.patterns_for(text).map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(matching("a green field"), [0; 0]);
        assert_eq!(matching("the REDDISH sky"), [0, 2]);
        let built: Vec<bool> = cued
            .patterns
            .iter()
            .map(|pattern| pattern.built.get().is_some())
            .collect();
        assert_eq!(built, [true, false, true]);
    }
}
