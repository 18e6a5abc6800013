//! Conversations in messengers: messages as they come, answers as they go, and what is known of
//! each conversation between them.
//!
//! A message is stored before the messenger is told that it came, and answered in one transaction
//! with its answers: a process that is killed between the two answers it again, from the beginning,
//! and no answer is stored twice.

mod outbox; // what is to be said
mod inbox; // messages of people
mod pictures; // pictures that came with a request
mod answers; // answers to questions of runs
mod questions; // when questions of runs were shown
mod watches; // tasks whose progress is told

pub use inbox::ChatMessage;
pub use outbox::{NewSaying, Saying};
pub use pictures::HandedOver;
pub use watches::ChatWatch;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::sql::Statement;
use super::{Store, StoreError};

/// Rows that are deleted at once at most.
const MOST_ERASED: u32 = 10_000;

impl Store {
    /// Returns what is known of a conversation.
    pub async fn chat_session(&self, id: &str) -> Result<Option<Value>, StoreError> {
        let query = Statement::new("SELECT document FROM chat_sessions WHERE id = $1").with(id);
        let row = self.fetch_first(query).await?;
        row.map(|row| row.document(0)).transpose()
    }

    /// Deletes what is older than that: conversations nobody spoke in, messages that were answered,
    /// answers that were given, the ends of tasks that were told, and pictures of requests.
    pub async fn erase_chat(&self, before: DateTime<Utc>) -> Result<(), StoreError> {
        for text in [
            "DELETE FROM chat_sessions WHERE id IN
                 (SELECT id FROM chat_sessions WHERE active_at < $1 LIMIT $2)",
            "DELETE FROM chat_messages WHERE id IN
                 (SELECT id FROM chat_messages WHERE handled_at < $1 LIMIT $2)",
            "DELETE FROM chat_outbox WHERE id IN
                 (SELECT id FROM chat_outbox WHERE at < $1 AND shown = wanted LIMIT $2)",
            "DELETE FROM chat_watches WHERE task IN
                 (SELECT task FROM chat_watches WHERE since < $1 LIMIT $2)",
        ] {
            self.execute(Statement::new(text).with(before).with(MOST_ERASED))
                .await?;
        }
        let pictures = Statement::new(
            "DELETE FROM once WHERE name IN
                 (SELECT name FROM once WHERE at < $1 AND SUBSTR(name, 1, LENGTH($3)) = $3 LIMIT $2)",
        );
        let pictures = pictures.with(before).with(MOST_ERASED).with(pictures::PICTURES);
        self.execute(pictures).await?;
        Ok(())
    }
}
