//! Tasks whose progress is told in a conversation.

use chrono::Utc;
use serde_json::Value;

use super::answers::ANSWERS;
use super::{pictures, questions};
use crate::store::sql::{Row, Statement};
use crate::store::{Store, StoreError};
use crate::task::id::{RunId, TaskId};

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

/// Returns the name under which it is kept where a task was asked for.
fn place_of(task: &TaskId) -> String {
    format!("chat of {task}")
}

impl Store {
    /// Has the progress of a task told; one that is told already stays where it is. Where it was
    /// asked for is known longer than it is told.
    pub async fn watch_in_chat(&self, watch: &ChatWatch) -> Result<(), StoreError> {
        self.first_time(&place_of(&watch.task), &watch.session).await?;
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

    /// Returns the conversation in which a task was asked for.
    pub async fn asked_for_in(&self, task: &TaskId) -> Result<Option<String>, StoreError> {
        self.noted_once(&place_of(task)).await
    }

    /// Deletes all that is known of the conversation in which a task was asked for, but for what is
    /// still to be answered or said there, and the names of its messages, by which a repetition is
    /// told. `runs` are those of the task.
    pub async fn erase_conversation(&self, task: &TaskId, session: &str, runs: &[RunId]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        for text in [
            "DELETE FROM chat_sessions WHERE id = $1",
            "DELETE FROM chat_outbox WHERE session = $1 AND shown = wanted",
        ] {
            transaction.execute(Statement::new(text).with(session)).await?;
        }
        let watch = Statement::new("DELETE FROM chat_watches WHERE task = $1").with(task);
        transaction.execute(watch).await?;
        for name in [place_of(task), pictures::name_of(task)] {
            let named = Statement::new("DELETE FROM once WHERE name = $1").with(name);
            transaction.execute(named).await?;
        }
        for run in runs {
            let answers = Statement::new("DELETE FROM once WHERE SUBSTR(name, 1, LENGTH($2)) = $2 AND value LIKE $1");
            let answers = answers.with(format!("%{run}%")).with(ANSWERS);
            transaction.execute(answers).await?;
            let shown = Statement::new("DELETE FROM once WHERE SUBSTR(name, 1, LENGTH($1)) = $1");
            transaction.execute(shown.with(questions::names_of(*run))).await?;
        }
        transaction.commit().await
    }

    /// Has a task told no more.
    pub async fn unwatch_in_chat(&self, task: &TaskId) -> Result<(), StoreError> {
        self.execute(Statement::new("DELETE FROM chat_watches WHERE task = $1").with(task))
            .await?;
        Ok(())
    }
}
