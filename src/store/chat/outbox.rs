//! The outbox of conversations: texts to be said, and how far each is.

use chrono::{DateTime, TimeDelta, Utc};
use serde_json::Value;
use uuid::Uuid;

use crate::store::sql::{Row, Statement};
use crate::store::{Store, StoreError};

/// A text to be said. Of several with the same id, the first is kept.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSaying {
    pub id: Uuid,
    pub session: String,
    pub document: Value,
}

/// A text that was not sent yet, or not in its last form.
#[derive(Debug, Clone, PartialEq)]
pub struct Saying {
    pub id: Uuid,
    pub session: String,
    pub document: Value,
    /// The version of the text.
    pub wanted: u64,
    /// Whether somebody began to send it, and nobody knows what came of it.
    pub is_begun: bool,
    /// Time before which it is not sent.
    pub not_before: DateTime<Utc>,
    /// The messenger's name for the message, if the text was sent before.
    pub message: Option<String>,
    /// The first of the attempts that failed without a gap, if the last one did.
    pub failing_since: Option<DateTime<Utc>>,
}

impl Saying {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.parsed(0)?,
            session: row.text(1)?.to_owned(),
            document: row.document(2)?,
            wanted: row.number(3)?.unsigned_abs(),
            is_begun: row.number(4)? == 1,
            not_before: row.time(5)?.unwrap_or_default(),
            message: row.text_if_any(6)?.map(str::to_owned),
            failing_since: row.time(7)?,
        })
    }
}

/// Returns the statements that store sayings, in their order.
pub(super) fn inserts(sayings: &[NewSaying], now: DateTime<Utc>) -> impl Iterator<Item = Statement> {
    sayings.iter().zip(0_i64..).map(move |(saying, place)| {
        let insert = Statement::new(
            "INSERT INTO chat_outbox (id, session, at, document, wanted, shown, begun, not_before)
             VALUES ($1, $2, $3, $4, 1, 0, 0, 0) ON CONFLICT (id) DO NOTHING",
        );
        let insert = insert.with(saying.id).with(saying.session.as_str());
        insert
            .with(now + TimeDelta::microseconds(place))
            .with(saying.document.to_string())
    })
}

impl Store {
    /// Stores what is to be said, all or nothing.
    pub async fn say_in_chat(&self, sayings: &[NewSaying]) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        for insert in inserts(sayings, Utc::now()) {
            transaction.execute(insert).await?;
        }
        transaction.commit().await
    }

    /// Stores a text that takes the place of what was said under its id, or is said anew.
    pub async fn change_saying(&self, saying: &NewSaying) -> Result<(), StoreError> {
        let set = Statement::new(
            "INSERT INTO chat_outbox (id, session, at, document, wanted, shown, begun, not_before)
             VALUES ($1, $2, $3, $4, 1, 0, 0, 0)
             ON CONFLICT (id) DO UPDATE SET document = excluded.document, wanted = chat_outbox.wanted + 1
             WHERE chat_outbox.document <> excluded.document",
        );
        let set = set.with(saying.id).with(saying.session.as_str()).with(Utc::now());
        self.execute(set.with(saying.document.to_string())).await?;
        Ok(())
    }

    /// Returns the oldest text of each conversation that is not shown in its last form, where it is
    /// due; `most` at most, oldest first. What waits keeps back what is to be said behind it, and
    /// takes no place among the others: the oldest of all conversations together would be the same
    /// ones for ever, once enough of them wait.
    pub async fn due_sayings(&self, now: DateTime<Utc>, most: u32) -> Result<Vec<Saying>, StoreError> {
        let query = Statement::new(
            "SELECT id, session, document, wanted, begun, not_before, message, failing_since FROM chat_outbox
             WHERE shown < wanted AND not_before <= $1 AND NOT EXISTS (
                 SELECT 1 FROM chat_outbox AS other WHERE other.session = chat_outbox.session
                 AND other.shown < other.wanted
                 AND (other.at < chat_outbox.at OR (other.at = chat_outbox.at AND other.id < chat_outbox.id)))
             ORDER BY at, id LIMIT $2",
        );
        let rows = self.fetch(query.with(now).with(most)).await?;
        rows.iter().map(Saying::read).collect()
    }

    /// Records that a text is about to be sent. From now on it may have been.
    pub async fn begin_saying(&self, id: Uuid) -> Result<(), StoreError> {
        let update = Statement::new("UPDATE chat_outbox SET begun = 1 WHERE id = $1");
        self.execute(update.with(id)).await?;
        Ok(())
    }

    /// Records that this version was said, or never will be.
    pub async fn said(&self, saying: &Saying, message: Option<&str>) -> Result<(), StoreError> {
        let update = Statement::new(
            "UPDATE chat_outbox SET shown = $2, begun = 0, message = COALESCE($3, message), failing_since = NULL
             WHERE id = $1",
        );
        self.execute(update.with(saying.id).with(saying.wanted).with(message))
            .await?;
        Ok(())
    }

    /// Records that a text is to be said anew, since what was said cannot be changed any more.
    pub async fn say_anew(&self, id: Uuid) -> Result<(), StoreError> {
        let update =
            Statement::new("UPDATE chat_outbox SET message = NULL, begun = 0, failing_since = NULL WHERE id = $1");
        self.execute(update.with(id)).await?;
        Ok(())
    }

    /// Records that a text was not said, as far as anybody knows, that its attempts have failed
    /// since a certain time, and that it is not sent again before another; `is_begun` tells whether
    /// it may have been taken all the same.
    pub async fn say_later(
        &self,
        id: Uuid,
        failing_since: DateTime<Utc>,
        not_before: DateTime<Utc>,
        is_begun: bool,
    ) -> Result<(), StoreError> {
        let update =
            Statement::new("UPDATE chat_outbox SET begun = $2, not_before = $3, failing_since = $4 WHERE id = $1");
        let update = update.with(id).with(i64::from(is_begun)).with(not_before);
        self.execute(update.with(failing_since)).await?;
        Ok(())
    }
}
