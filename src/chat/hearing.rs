//! The admission of messages: from people whom the configuration names, where they speak to the
//! bot.

use std::sync::PoisonError;

use chrono::{DateTime, Utc};
use serde_json::Value;
use uuid::Uuid;

use super::phrases::Phrase;
use super::sayings::Draft;
use super::services::ChatServices;
use crate::journal::fact::Fact;
use crate::messenger::place::{Body, Incoming};
use crate::messenger::slack;
use crate::messenger::words::visible;
use crate::routing::text::is_japanese;
use crate::store::StoreError;

/// Messages of one conversation that may wait for their answers.
const MOST_WAITING: u64 = 20;
/// Messages of all conversations that may wait: a person who begins one conversation after the
/// other is no less a flood.
const MOST_WAITING_IN_ALL: u64 = 400;
/// Most people without access who are remembered.
const MOST_STRANGERS: usize = 1_000;

/// The outcome of hearing a message or a press of a button.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Heard {
    /// It is stored and is answered.
    Taken,
    /// It was stored before.
    Repeated,
    /// It is not for the bot, or from somebody who is not heard.
    Ignored,
}

/// Why what came is not safely kept. Its sender has to tell it again.
#[derive(Debug, thiserror::Error)]
pub enum NotKept {
    /// Without the bot's own name nobody can tell what is said to it.
    #[error("Slack does not tell who the bot is: {0}")]
    NoOwnName(String),
    #[error("a message could not be stored: {0}")]
    Store(#[from] StoreError),
}

impl ChatServices {
    /// Takes what an event of Slack tells; nothing is heard in one that tells nothing to the bot.
    pub(super) async fn take_from_slack(&self, payload: &Value) -> Result<Vec<Heard>, NotKept> {
        let Some(slack) = &self.slack else {
            return Err(NotKept::NoOwnName("chat.slack has no bot_token".to_owned()));
        };
        let own = slack.own().await;
        let own = own.map_err(|failure| NotKept::NoOwnName(failure.to_string()))?;
        let incoming = slack::heard(payload, &self.service.config().chat.slack, &own.user);
        self.take_all(incoming.into_iter().collect()).await
    }

    /// Stores what people said, in its order.
    pub(super) async fn take_all(&self, incoming: Vec<Incoming>) -> Result<Vec<Heard>, NotKept> {
        let mut heard = Vec::new();
        for one in incoming {
            heard.push(self.take(one).await?);
        }
        Ok(heard)
    }

    /// Stores what somebody said, without secrets, if it is for the bot and they are heard.
    async fn take(&self, mut incoming: Incoming) -> Result<Heard, StoreError> {
        let session = incoming.place.to_string();
        let is_known = self.accounts(incoming.place.messenger, &incoming.user).is_some();
        if !is_known {
            self.turn_away(&incoming).await?;
            return Ok(Heard::Ignored);
        }
        // Before the conversation is looked for, which is there when its first message is answered:
        // asked the other way round, an answer in between would hide both.
        let waiting = self.store().count_open_chat_messages(&session).await?;
        let takes_part = incoming.is_addressed || waiting > 0 || self.store().chat_session(&session).await?.is_some();
        if !takes_part {
            return Ok(Heard::Ignored);
        }
        let is_flooded =
            waiting >= MOST_WAITING || self.store().count_all_open_chat_messages().await? >= MOST_WAITING_IN_ALL;
        // What was taken before is answered, whatever waits.
        if is_flooded && !self.store().knows_chat_message(&incoming.id).await? {
            self.send_away(&incoming, &session).await?;
            return Ok(Heard::Ignored);
        }
        if let Body::Text { text } = &mut incoming.body {
            *text = self.service.clean(&visible(text)).into_string();
        }
        for attached in &mut incoming.attached {
            attached.name = self.service.clean(&visible(&attached.name)).into_string();
        }
        let document = serde_json::to_value(&incoming).unwrap_or_default();
        let is_new = self
            .store()
            .take_chat_message(&incoming.id, &session, &document)
            .await?;
        self.service.answer_now();
        Ok(if is_new { Heard::Taken } else { Heard::Repeated })
    }

    /// Says, once in an hour of each conversation, that what is said there is not taken now.
    async fn send_away(&self, incoming: &Incoming, session: &str) -> Result<(), StoreError> {
        let is_japanese = matches!(&incoming.body, Body::Text { text } if is_japanese(text));
        let draft = Draft::of(self, &incoming.place, &flood(session, Utc::now()));
        let draft = draft.says(&Phrase::TooMany.in_words(is_japanese));
        self.store().say_in_chat(&draft.finished()).await
    }

    /// Notes once that somebody is not heard who speaks to the bot. Who presses a button is told
    /// so: it looks as if it were for everybody.
    async fn turn_away(&self, incoming: &Incoming) -> Result<(), StoreError> {
        // What people say to one another concerns nobody here, and whoever said it may speak to the
        // bot later.
        if !incoming.is_addressed {
            return Ok(());
        }
        let who = format!("{}:{}", incoming.place.messenger.as_str(), incoming.user);
        let is_new = {
            let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
            strangers.len() < MOST_STRANGERS && strangers.insert(who.clone())
        };
        if is_new {
            self.note(Fact::Ignored {
                author: who.clone(),
                reason: "they are not among the allowed_users of chat".to_owned(),
            });
        }
        if let Body::Press { value } = &incoming.body {
            let what = Uuid::new_v5(&Uuid::NAMESPACE_OID, value.as_bytes());
            let draft = Draft::of(self, &incoming.place, &format!("stranger {who} {what}"));
            let draft = draft.says(&Phrase::Stranger.in_words(false));
            self.store().say_in_chat(&draft.finished()).await?;
        }
        Ok(())
    }
}

/// Returns the cause of the text that nothing is taken at a time. A cause without the time would
/// have it said in the first flood of a conversation and in no later one.
fn flood(session: &str, now: DateTime<Utc>) -> String {
    format!("flood {session} {}", now.format("%Y-%m-%dT%H"))
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn a_flood_is_told_again_in_another_hour() {
        let at = |minutes| DateTime::UNIX_EPOCH + TimeDelta::minutes(minutes);
        assert_eq!(flood("s", at(1)), flood("s", at(59)));
        assert_ne!(flood("s", at(59)), flood("s", at(60)));
        assert_ne!(flood("s", at(0)), flood("s", at(24 * 60)));
        assert_ne!(flood("s", at(0)), flood("t", at(0)));
    }
}
