//! The state of a conversation: its settings, and a short memory of what was said.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::messenger::place::Attached;
use crate::routing::Route;

/// Most entries of the memory, and most characters of one.
const MOST: usize = 12;
const LONGEST: usize = 2_000;
/// Number of messages after a picture with which it is shown again.
const PICTURE_FOR: u8 = 3;
/// The rule that `/local` sets, for people.
pub(super) const LOCAL_ONLY: &str = "the conversation is set to /local";
/// The text that stands for a message of nothing but pictures.
pub(super) const WORDLESS: &str = "(no words, only what is shown)";

/// A conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Session {
    /// Whether the people in it want only models on this machine or in a private network asked.
    #[serde(rename = "near_only")]
    pub(super) local_only: bool,
    /// The rule that demands the same because a confidential repository was talked about. It stays
    /// when other things are: what is remembered, and what people copy of it, is of that
    /// repository.
    pub(super) rule: Option<String>,
    /// The route of the last message.
    pub(super) route: Option<Route>,
    pub(super) is_japanese: bool,
    pub(super) memory: Vec<Remembered>,
    /// The pictures that were sent last, and for how many messages more they are shown.
    pub(super) pictures: Vec<Attached>,
    pub(super) shown_for: u8,
}

/// A message of the bot or of a person, as the conversation remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remembered {
    pub(super) by_bot: bool,
    pub(super) text: String,
}

impl Session {
    /// Reads a conversation. One that another version has written in a form of its own begins anew,
    /// but for what its people wanted of models.
    pub(super) fn read(document: Value) -> Self {
        let is_near = document["near_only"] == true || document["rule"].is_string();
        serde_json::from_value(document).unwrap_or_else(|_| Self {
            local_only: is_near,
            ..Self::default()
        })
    }

    /// Returns the rule that keeps the conversation on near models, if one does.
    pub(super) fn local_only_rule(&self) -> Option<&str> {
        if self.local_only {
            Some(LOCAL_ONLY)
        } else {
            self.rule.as_deref()
        }
    }

    /// Lets models elsewhere be asked again. Where they were not asked, what the conversation
    /// remembers was said in confidence, so it is forgotten, but for `attached`, the pictures of
    /// the message that says so. Returns whether anything was forgotten.
    pub(super) fn open(&mut self, attached: &[Attached]) -> bool {
        if self.local_only_rule().is_none() {
            return false;
        }
        self.local_only = false;
        self.rule = None;
        let is_shown_else = attached.is_empty() && !self.pictures.is_empty();
        let is_forgotten = is_shown_else || !self.memory.is_empty();
        self.memory.clear();
        self.pictures = attached.to_vec();
        is_forgotten
    }

    /// Takes up the pictures of a message. Those of one before are shown a little longer: in LINE a
    /// picture is a message by itself, and the question about it is the next.
    pub(super) fn see(&mut self, attached: &[Attached]) {
        if !attached.is_empty() {
            self.pictures = attached.to_vec();
            self.shown_for = PICTURE_FOR;
        } else if self.shown_for == 0 {
            self.pictures.clear();
        } else {
            self.shown_for -= 1;
        }
    }

    /// Remembers a person's message. Of its pictures only the names are.
    pub(super) fn remember_message(&mut self, text: &str, attached: &[Attached]) {
        let names = attached.iter().map(|one| format!("[{}]", one.name));
        let text = if text.trim().is_empty() && !attached.is_empty() {
            WORDLESS
        } else {
            text
        };
        let lines: Vec<String> = [text.to_owned()].into_iter().chain(names).collect();
        self.remember(false, &lines.join("\n"));
    }

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
    fn a_picture_is_shown_with_the_next_messages_and_then_no_more() {
        let mut session = Session::default();
        let picture = |name: &str| Attached {
            name: name.to_owned(),
            place: "1".to_owned(),
        };
        session.see(&[picture("a")]);
        for _ in 0..PICTURE_FOR {
            session.see(&[]);
            assert_eq!(session.pictures, [picture("a")]);
        }
        session.see(&[]);
        assert_eq!(session.pictures, []);
        session.see(&[picture("b")]);
        session.see(&[picture("c")]);
        assert_eq!(session.pictures, [picture("c")]);
    }

    #[test]
    fn what_was_said_in_confidence_is_forgotten_before_models_elsewhere_are_asked() {
        let picture = |name: &str| Attached {
            name: name.to_owned(),
            place: "1".to_owned(),
        };
        let said = |local_only| {
            let mut session = Session {
                local_only,
                ..Session::default()
            };
            session.see(&[picture("a")]);
            session.remember_message("a word", &[picture("a")]);
            session
        };
        let mut open = said(false);
        assert!(!open.open(&[]));
        assert_eq!(open, said(false), "they knew it before");
        let mut near = said(true);
        assert!(near.open(&[]) && near.local_only_rule().is_none());
        assert!(near.memory.is_empty() && near.pictures.is_empty());
        let mut near = said(true);
        near.see(&[picture("b")]);
        assert!(near.open(&[picture("b")]));
        assert_eq!(near.pictures, [picture("b")], "it came with the message");
        let mut empty = Session {
            local_only: true,
            ..Session::default()
        };
        assert!(!empty.open(&[]), "there is nothing to forget");
        assert!(!empty.local_only);
        let mut confidential = said(false);
        confidential.rule = Some("it is named".to_owned());
        assert_eq!(confidential.local_only_rule(), Some("it is named"));
        assert!(confidential.open(&[]));
        assert_eq!((confidential.local_only_rule(), confidential.memory.len()), (None, 0));
    }

    #[test]
    fn a_conversation_of_an_earlier_version_is_read() {
        let kept = serde_json::json!({
            "near_only": true, "route": "PLAN", "is_japanese": false, "pictures": [], "shown_for": 0,
            "memory": [{ "by_bot": false, "text": "a word" }],
        });
        let session = Session::read(kept);
        assert_eq!((session.local_only_rule(), session.memory.len()), (Some(LOCAL_ONLY), 1));
        assert_eq!(session.rule, None);
        let document = serde_json::to_value(&session).unwrap();
        assert_eq!(document["near_only"], true);
    }

    #[test]
    fn a_conversation_that_cannot_be_read_begins_anew_and_stays_near() {
        for (document, is_near) in [
            (serde_json::json!({ "near_only": true, "route": "DANCE" }), true),
            (
                serde_json::json!({ "near_only": false, "rule": "it is named", "memory": 5 }),
                true,
            ),
            (
                serde_json::json!({ "near_only": false, "rule": null, "memory": 5 }),
                false,
            ),
            (serde_json::json!("a word"), false),
        ] {
            let session = Session::read(document.clone());
            assert_eq!(session.local_only_rule().is_some(), is_near, "{document}");
            assert!(session.memory.is_empty());
        }
    }

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
