//! What is known of a conversation: its settings, and a short memory of what was said.

use serde::{Deserialize, Serialize};

use crate::routing::Route;

/// Most entries of the memory, and most characters of one.
const MOST: usize = 12;
const LONGEST: usize = 2_000;

/// A conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Session {
    /// Only models that are near are asked.
    pub(super) near_only: bool,
    /// The route of the last message.
    pub(super) route: Option<Route>,
    pub(super) is_japanese: bool,
    pub(super) memory: Vec<Remembered>,
}

/// What somebody said.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remembered {
    pub(super) by_bot: bool,
    pub(super) text: String,
}

impl Session {
    /// Remembers what was said, and forgets the oldest.
    pub(super) fn remember(&mut self, by_bot: bool, text: &str) {
        let text: String = text.trim().chars().take(LONGEST).collect();
        if text.is_empty() {
            return;
        }
        match self.memory.last_mut() {
            // Models are told of speakers that take turns.
            Some(last) if last.by_bot == by_bot => {
                last.text = format!("{}\n{text}", last.text).chars().take(LONGEST).collect();
            }
            _ => self.memory.push(Remembered { by_bot, text }),
        }
        let surplus = self.memory.len().saturating_sub(MOST);
        self.memory.drain(..surplus);
        if self.memory.first().is_some_and(|first| first.by_bot) {
            self.memory.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_is_short() {
        let mut session = Session::default();
        for number in 0..20 {
            session.remember(number % 2 == 1, &format!("{number}{}", "x".repeat(3_000)));
        }
        session.remember(true, "  ");
        assert_eq!(session.memory.len(), MOST);
        assert!(session.memory[0].text.starts_with("8x") && session.memory[0].text.len() == LONGEST);
        session.remember(false, "a");
        session.remember(false, "b");
        let last = session.memory.last().unwrap();
        assert_eq!((last.by_bot, last.text.as_str()), (false, "a\nb"));
        assert!(!session.memory[0].by_bot, "a person speaks first");
    }
}
