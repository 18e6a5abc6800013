//! The messages that are being answered: one of each conversation at a time, a few at once.
//!
//! A conversation whose message could not be answered rests for a while, and no other one with it.
//! A message that breaks the program off again and again is given up: tried without an end it would
//! ask models without an end.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use tokio::task::Id;

use crate::store::ChatMessage;

/// Conversations that are answered at once.
const AT_ONCE: usize = 8;
/// Pause before a message is tried again that could not be answered.
const REST: Duration = Duration::from_secs(10);
/// Attempts at a message that breaks the program off.
const ATTEMPTS: u32 = 3;

/// The messages that are being answered, and the conversations that rest.
#[derive(Debug, Default)]
pub(super) struct UnderWay {
    tasks: HashMap<Id, ChatMessage>,
    resting: HashMap<String, Instant>,
    /// How often each message broke the program off, by its name.
    broken: HashMap<String, u32>,
}

impl UnderWay {
    /// Tells whether a message may be answered now. One that waits keeps back what was said behind
    /// it.
    pub(super) fn may_begin(&self, message: &ChatMessage) -> bool {
        let is_busy = self.tasks.values().any(|other| other.session == message.session);
        let until = self.resting.get(&message.session);
        let rests = until.is_some_and(|until| *until > Instant::now());
        !is_busy && !rests && self.tasks.len() < AT_ONCE
    }

    /// Tells whether a message broke the program off too often to be tried once more.
    pub(super) fn is_given_up(&self, message: &ChatMessage) -> bool {
        self.broken.get(&message.id).is_some_and(|times| *times >= ATTEMPTS)
    }

    pub(super) fn began(&mut self, task: Id, message: ChatMessage) {
        self.resting.remove(&message.session);
        self.tasks.insert(task, message);
    }

    pub(super) fn answered(&mut self, task: Id) {
        if let Some(message) = self.tasks.remove(&task) {
            self.broken.remove(&message.id);
        }
    }

    /// Has the conversation of a message rest that could not be answered; returns the message.
    pub(super) fn failed(&mut self, task: Id) -> Option<ChatMessage> {
        let message = self.tasks.remove(&task)?;
        self.resting.insert(message.session.clone(), Instant::now() + REST);
        Some(message)
    }

    /// Counts an attempt at a message that broke the program off, and has its conversation rest;
    /// returns the message.
    pub(super) fn broke_off(&mut self, task: Id) -> Option<ChatMessage> {
        let message = self.failed(task)?;
        *self.broken.entry(message.id.clone()).or_default() += 1;
        Some(message)
    }
}

#[cfg(test)]
mod tests {
    use chrono::Utc;
    use serde_json::Value;

    use super::*;

    fn message(id: &str, session: &str) -> ChatMessage {
        ChatMessage {
            id: id.to_owned(),
            session: session.to_owned(),
            at: Utc::now(),
            document: Value::Null,
        }
    }

    #[tokio::test]
    async fn a_message_that_breaks_the_program_off_holds_up_its_own_conversation_and_is_given_up() {
        let mut under_way = UnderWay::default();
        let [strange, behind, other] =
            [("m1", "s"), ("m2", "s"), ("m3", "t")].map(|(id, session)| message(id, session));
        let begin = |under_way: &mut UnderWay, message: &ChatMessage| {
            let task = tokio::spawn(async {}).id();
            under_way.began(task, message.clone());
            task
        };
        let at_work = begin(&mut under_way, &other);
        for attempt in 0..ATTEMPTS {
            assert!(!under_way.is_given_up(&strange), "after {attempt} attempts");
            under_way.resting.clear();
            assert!(under_way.may_begin(&strange));
            let task = begin(&mut under_way, &strange);
            assert!(!under_way.may_begin(&behind));
            assert_eq!(under_way.broke_off(task), Some(strange.clone()));
            // It rests, and the other conversation is still being answered.
            assert!(!under_way.may_begin(&strange) && !under_way.may_begin(&behind));
            assert!(!under_way.may_begin(&other));
        }
        assert!(under_way.is_given_up(&strange) && !under_way.is_given_up(&behind));
        under_way.answered(at_work);
        assert!(under_way.may_begin(&other));
        // Giving it up answers it, and the next message of its conversation may begin.
        let task = begin(&mut under_way, &strange);
        under_way.answered(task);
        assert!(under_way.may_begin(&behind) && under_way.broken.is_empty());
    }

    #[tokio::test]
    async fn a_message_that_could_not_be_answered_yet_is_no_broken_one() {
        let mut under_way = UnderWay::default();
        let waiting = message("m1", "s");
        for _ in 0..10 {
            let task = tokio::spawn(async {}).id();
            under_way.began(task, waiting.clone());
            assert_eq!(under_way.failed(task), Some(waiting.clone()));
        }
        assert!(!under_way.is_given_up(&waiting) && !under_way.may_begin(&waiting));
    }
}
