//! Tasks whose progress is told in a conversation.

use chrono::Utc;
use serde_json::Value;

use crate::store::sql::{Row, Statement};
use crate::store::{Store, StoreError};
use crate::task::id::TaskId;

/// A task that a conversation is told of. What was told is the caller's own document.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatWatch {
    pub task: TaskId,
    pub session: String,
    pub document: Value,
}

impl ChatWatch {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            task: row.parsed(0)?,
            session: row.text(1)?.to_owned(),
            document: row.document(2)?,
        })
    }
}

impl Store {
    /// Has the progress of a task told; one that is told already stays where it is.
    pub async fn watch_in_chat(&self, watch: &ChatWatch) -> Result<(), StoreError> {
        let insert = Statement::new(
            "INSERT INTO chat_watches (task, session, document, since) VALUES ($1, $2, $3, $4)
             ON CONFLICT (task) DO NOTHING",
        );
        let insert = insert.with(&watch.task).with(watch.session.as_str());
        self.execute(insert.with(watch.document.to_string()).with(Utc::now()))
            .await?;
        Ok(())
    }

    /// Records what was told.
    pub async fn told_in_chat(&self, task: &TaskId, document: &Value) -> Result<(), StoreError> {
        let update = Statement::new("UPDATE chat_watches SET document = $2, since = $3 WHERE task = $1");
        self.execute(update.with(task).with(document.to_string()).with(Utc::now()))
            .await?;
        Ok(())
    }

    /// Returns the tasks that are told, `most` at most, those told longest ago last.
    pub async fn chat_watches(&self, most: u32) -> Result<Vec<ChatWatch>, StoreError> {
        let query =
            Statement::new("SELECT task, session, document FROM chat_watches ORDER BY since DESC, task LIMIT $1");
        let rows = self.fetch(query.with(most)).await?;
        rows.iter().map(ChatWatch::read).collect()
    }

    /// Has a task told no more.
    pub async fn unwatch_in_chat(&self, task: &TaskId) -> Result<(), StoreError> {
        self.execute(Statement::new("DELETE FROM chat_watches WHERE task = $1").with(task))
            .await?;
        Ok(())
    }
}
