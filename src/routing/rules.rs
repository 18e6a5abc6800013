//! The dictionary: words that are strong evidence for a route. The shipped one is data
//! (`rules.yaml`), and a file of the operator's may replace it.

use std::sync::LazyLock;

use serde::Deserialize;

use super::Route;
use super::text::{folded, holds};

/// The shipped dictionary.
const SHIPPED: &str = include_str!("rules.yaml");
/// Most rules, and most words of all rules: each is looked for in each message.
const MOST_RULES: usize = 500;
const MOST_WORDS: usize = 10_000;

/// A dictionary. Its rules stand in the order in which they are looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    rules: Vec<Rule>,
    strong: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    rules: Vec<Rule>,
    /// Words of which the classifier's evidence must hold one before CODE is chosen.
    #[serde(default)]
    strong_for_code: Vec<String>,
}

/// A rule: it applies where each group of `all` has a word in the message and `none` has none.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    route: Route,
    #[serde(default)]
    priority: i32,
    all: Vec<Vec<String>>,
    #[serde(default)]
    none: Vec<String>,
    /// Most characters of a message that it applies to.
    longest: Option<usize>,
}

/// A rule that applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hit {
    pub route: Route,
    /// The words of the rule that stand in the message, one of each group.
    pub evidence: Vec<String>,
}

impl Rules {
    /// Returns the shipped dictionary.
    pub fn shipped() -> &'static Self {
        #[expect(clippy::expect_used, reason = "the file is part of the program, and a test reads it")]
        static RULES: LazyLock<Rules> = LazyLock::new(|| Rules::read(SHIPPED).expect("the shipped rules"));
        &RULES
    }

    /// Reads a dictionary; the error says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        let document: Document = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        let mut rules = document.rules;
        let words = |rule: &Rule| rule.all.iter().flatten().count() + rule.none.len();
        if rules.len() > MOST_RULES || rules.iter().map(words).sum::<usize>() > MOST_WORDS {
            return Err(format!("more than {MOST_RULES} rules or {MOST_WORDS} words"));
        }
        for (place, rule) in rules.iter_mut().enumerate() {
            let is_empty = |word: &String| word.trim_matches('*').trim().is_empty();
            let groups = &rule.all;
            if groups.is_empty() || groups.iter().any(Vec::is_empty) || groups.iter().flatten().any(is_empty) {
                return Err(format!(
                    "rule {} ({}): `all` needs at least one group, each with at least one word",
                    place + 1,
                    rule.route
                ));
            }
            for word in rule.all.iter_mut().flatten().chain(&mut rule.none) {
                *word = folded(word);
            }
        }
        // Stable: of the same priority the first counts.
        rules.sort_by_key(|rule| std::cmp::Reverse(rule.priority));
        let strong = document.strong_for_code.iter().map(|word| folded(word)).collect();
        Ok(Self { rules, strong })
    }

    /// Returns the first rule that applies to a folded message.
    pub fn find(&self, message: &str) -> Option<Hit> {
        self.rules.iter().find_map(|rule| rule.applies(message))
    }

    /// Tells whether a passage of a message is strong evidence for CODE: it holds a word that says
    /// so, or names a file or a function.
    pub fn is_strong(&self, passage: &str) -> bool {
        self.asks_for_code(passage) || folded(passage).split_whitespace().any(names_code)
    }

    /// Tells whether a text holds a word that says so. The name of a file is not enough where no
    /// other sign of a wish for a change is left: whoever asks what a file does names it as well.
    pub fn asks_for_code(&self, text: &str) -> bool {
        let text = folded(text);
        self.strong.iter().any(|word| holds(&text, word))
    }
}

impl Rule {
    fn applies(&self, message: &str) -> Option<Hit> {
        if self
            .longest
            .is_some_and(|longest| message.trim().chars().count() > longest)
        {
            return None;
        }
        if self.none.iter().any(|word| holds(message, word)) {
            return None;
        }
        let evidence = self
            .all
            .iter()
            .map(|group| group.iter().find(|word| holds(message, word)).cloned())
            .collect::<Option<Vec<String>>>()?;
        Some(Hit {
            route: self.route,
            evidence,
        })
    }
}

/// Tells whether a word is the name of a file or a call: `src/main.rs`, `parse()`.
fn names_code(word: &str) -> bool {
    let word = word.trim_matches(|sign: char| !sign.is_alphanumeric() && sign != ')' && sign != '/');
    let ending = word.rsplit_once('.').map_or("", |(_, ending)| ending);
    let is_file = word.len() > ending.len() + 1
        && matches!(
            ending,
            "rs" | "py"
                | "js"
                | "ts"
                | "tsx"
                | "go"
                | "java"
                | "rb"
                | "c"
                | "h"
                | "cpp"
                | "md"
                | "yaml"
                | "yml"
                | "toml"
                | "json"
                | "html"
                | "css"
                | "sql"
                | "sh"
        );
    is_file || word.ends_with("()")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greater_priority_counts_and_then_the_first() {
        let text = "rules:\n- {route: CHAT, all: [[b]]}\n- {route: PLAN, priority: 2, all: [[a]]}\n\
                    - {route: OPS, priority: 2, all: [[a]]}";
        let rules = Rules::read(text).unwrap();
        assert_eq!(rules.find("a b").map(|hit| hit.route), Some(Route::Plan));
        assert_eq!(rules.find("b").map(|hit| hit.route), Some(Route::Chat));
        assert_eq!(rules.find("ab"), None);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        for (text, words) in [
            ("rules: 5", "sequence"),
            ("rules:\n- {route: DANCE, all: [[a]]}", "DANCE"),
            ("rules:\n- {route: CHAT, all: []}", "rule 1 (CHAT)"),
            ("rules:\n- {route: CHAT, all: [[\"*\"]]}", "at least one word"),
            ("rules:\n- {route: CHAT, any: [a]}", "any"),
        ] {
            let error = Rules::read(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_name_of_code_is_strong_evidence() {
        let rules = Rules::shipped();
        for strong in ["in `src/main.rs`", "parse() panics", "README.md", "バグを直して"] {
            assert!(rules.is_strong(strong), "{strong}");
        }
        for weak in ["", "the weather", "v1.2", "e.g. this", ".rs"] {
            assert!(!rules.is_strong(weak), "{weak}");
        }
        assert!(rules.asks_for_code("Fix that") && rules.asks_for_code("バグを直して"));
        assert!(!rules.asks_for_code("in `src/main.rs`") && !rules.asks_for_code("parse() panics"));
    }
}
