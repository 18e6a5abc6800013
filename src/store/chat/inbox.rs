//! Messages of people, each once.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::outbox::{self, NewSaying};
use crate::store::sql::{Row, Statement};
use crate::store::{Store, StoreError, again};

/// A message that was not answered yet. What it says is the caller's own document.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatMessage {
    /// The messenger's name for it; a repeated delivery has the same.
    pub id: String,
    pub session: String,
    pub at: DateTime<Utc>,
    pub document: Value,
}

impl ChatMessage {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.text(0)?.to_owned(),
            session: row.text(1)?.to_owned(),
            at: row.time(2)?.unwrap_or_default(),
            document: row.document(3)?,
        })
    }
}

impl Store {
    /// Stores a message; returns false, and changes nothing, if it is known.
    pub async fn take_chat_message(&self, id: &str, session: &str, document: &Value) -> Result<bool, StoreError> {
        let insert = || {
            let insert = Statement::new(
                "INSERT INTO chat_messages (id, session, at, document) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING",
            );
            insert
                .with(id)
                .with(session)
                .with(Utc::now())
                .with(document.to_string())
        };
        again!(self.insert_if_new(insert()))
    }

    /// Tells whether a message was stored, also one that was answered since.
    pub async fn knows_chat_message(&self, id: &str) -> Result<bool, StoreError> {
        let query = Statement::new("SELECT COUNT(*) FROM chat_messages WHERE id = $1");
        Ok(self.fetch_count(query.with(id)).await? > 0)
    }

    /// Returns up to `most` messages that were not answered yet, oldest first.
    pub async fn open_chat_messages(&self, most: u32) -> Result<Vec<ChatMessage>, StoreError> {
        let query = Statement::new(
            "SELECT id, session, at, document FROM chat_messages WHERE handled_at IS NULL ORDER BY at, id LIMIT $1",
        );
        let rows = self.fetch(query.with(most)).await?;
        rows.iter().map(ChatMessage::read).collect()
    }

    /// Returns how many messages of a conversation wait.
    pub async fn count_open_chat_messages(&self, session: &str) -> Result<u64, StoreError> {
        let query = Statement::new("SELECT COUNT(*) FROM chat_messages WHERE session = $1 AND handled_at IS NULL");
        self.fetch_count(query.with(session)).await
    }

    /// Returns how many messages wait in all conversations.
    pub async fn count_all_open_chat_messages(&self) -> Result<u64, StoreError> {
        let query = Statement::new("SELECT COUNT(*) FROM chat_messages WHERE handled_at IS NULL");
        self.fetch_count(query).await
    }

    /// Records that a message was answered: what is known of its conversation now, where that
    /// changed, and what is to be said. Its text is not kept.
    pub async fn finish_chat_message(
        &self,
        message: &ChatMessage,
        session: Option<&Value>,
        sayings: &[NewSaying],
    ) -> Result<(), StoreError> {
        let now = Utc::now();
        let mut transaction = self.begin().await?;
        if let Some(document) = session {
            let set = Statement::new(
                "INSERT INTO chat_sessions (id, document, active_at) VALUES ($1, $2, $3)
                 ON CONFLICT (id) DO UPDATE SET document = excluded.document, active_at = excluded.active_at",
            );
            let set = set.with(message.session.as_str()).with(document.to_string()).with(now);
            transaction.execute(set).await?;
        }
        for insert in outbox::inserts(sayings, now) {
            transaction.execute(insert).await?;
        }
        let end = Statement::new("UPDATE chat_messages SET handled_at = $2, document = 'null' WHERE id = $1");
        transaction.execute(end.with(message.id.as_str()).with(now)).await?;
        transaction.commit().await
    }
}
