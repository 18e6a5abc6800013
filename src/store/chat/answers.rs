//! Answers to questions of runs that were about to take effect, by the messages that gave them.

use crate::store::{Store, StoreError};

/// How the names begin under which they are kept; the id of the message follows.
pub(super) const ANSWERS: &str = "chat answer ";

fn name_of(message: &str) -> String {
    format!("{ANSWERS}{message}")
}

impl Store {
    /// Keeps the answer that a message gives, unless one is kept. It is the caller's own document,
    /// in which the id of its run stands.
    pub async fn keep_chat_answer(&self, message: &str, document: &str) -> Result<(), StoreError> {
        self.first_time(&name_of(message), document).await?;
        Ok(())
    }

    /// Returns the answer that was kept for a message.
    pub async fn kept_chat_answer(&self, message: &str) -> Result<Option<String>, StoreError> {
        self.noted_once(&name_of(message)).await
    }
}
