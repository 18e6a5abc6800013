//! Describes a secret that was found in a text, without its value.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Redactor, encoded};

/// The name space of fingerprints. Never change it: what people allowed is stored by fingerprint.
const FINGERPRINTS: Uuid = Uuid::from_u128(0x5d2c_8a1e_7b94_4f06_9e3b_1c6d_f0a2_8e57);

/// A secret in a text: its kind and place, without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leak {
    /// The kind of a known form, e.g. `github-token`; `None` for a value of the configuration.
    pub kind: Option<String>,
    /// The line on which it begins, counted from one.
    pub line: usize,
    /// Equal for the same secret and for no other. It gives away only a secret that can be guessed.
    pub fingerprint: Uuid,
}

impl Redactor {
    /// Returns every secret in `text`, in order: empty exactly if cleaning changes nothing.
    pub fn leaks(&self, text: &str) -> Vec<Leak> {
        let mut line = 1;
        let mut counted = 0;
        let leaks = self.find(text).into_iter().map(|found| {
            line += text[counted..found.range.start].matches('\n').count();
            counted = found.range.start;
            Leak {
                kind: found.kind.map(str::to_owned),
                line,
                fingerprint: Uuid::new_v5(&FINGERPRINTS, &text.as_bytes()[found.range]),
            }
        });
        leaks.collect()
    }

    /// Returns every secret in the content of a file, however its text is encoded.
    pub fn leaks_in(&self, content: &[u8]) -> Vec<Leak> {
        let (mut all, mut known) = (Vec::new(), HashSet::new());
        for text in encoded::texts(content) {
            let mut found = self.leaks(&text);
            found.retain(|leak| !known.contains(&leak.fingerprint));
            known.extend(found.iter().map(|leak| leak.fingerprint));
            all.extend(found);
        }
        all
    }
}

impl fmt::Display for Leak {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind.as_deref().unwrap_or("a value of the configuration");
        write!(formatter, "{kind} on line {}", self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Built from parts, so that no scanner takes this file for a leak.
    fn token() -> String {
        format!("ghp_{}", "Ab3dEf6hIj9lMn2p".repeat(3))
    }

    #[test]
    fn a_leak_says_what_and_where_but_not_the_secret() {
        let redactor = Redactor::new(&["hunter2hunter2".into()]);
        let token = token();
        let text = format!("a\nkey: {token}\n\nhunter2hunter2 {token}\n");
        let leaks = redactor.leaks(&text);
        let said: Vec<String> = leaks.iter().map(ToString::to_string).collect();
        insta::assert_debug_snapshot!(said, @r#"
        [
            "github-token on line 2",
            "a value of the configuration on line 4",
            "github-token on line 4",
        ]
        "#);
        assert_eq!(leaks[0].fingerprint, leaks[2].fingerprint);
        assert_ne!(leaks[0].fingerprint, leaks[1].fingerprint);
        let written = serde_json::to_string(&leaks).unwrap();
        assert!(!written.contains("hunter2") && !written.contains(&token), "{written}");
    }

    #[test]
    fn the_fingerprint_of_a_secret_never_changes() {
        let redactor = Redactor::new(&["hunter2hunter2".into()]);
        let fingerprint = redactor.leaks("hunter2hunter2")[0].fingerprint.to_string();
        insta::assert_snapshot!(fingerprint, @"c9ee418f-3e06-566f-9193-23c38a082f7b");
    }

    #[test]
    fn where_nothing_leaks_nothing_is_cleaned() {
        let redactor = Redactor::new(&["hunter2hunter2".into()]);
        for text in ["", "ordinary\ntext", "[redacted] [redacted:github-token]"] {
            assert_eq!(redactor.leaks(text), []);
            assert_eq!(redactor.clean(text).as_str(), text);
        }
    }
}
