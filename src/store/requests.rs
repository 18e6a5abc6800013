//! Requests of people to a run that another process may be working on.

use uuid::Uuid;

use super::sql::Statement;
use super::{Store, StoreError};
use crate::task::id::RunId;

/// A person's request to a run, in the caller's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    pub id: Uuid,
    pub text: String,
    /// The name of the person, where it is known.
    pub by: Option<String>,
}

impl Store {
    /// Stores a request for whoever works on the run, now or later. The words are the caller's;
    /// `by` is the name of the person, where it is known.
    pub async fn ask(&self, run: RunId, request: &str, by: Option<&str>) -> Result<(), StoreError> {
        let insert = Statement::new(
            "INSERT INTO requests (id, run, request, asked_by) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING",
        );
        let insert = insert.with(Uuid::now_v7()).with(run).with(request).with(by);
        self.execute(insert).await?;
        Ok(())
    }

    /// Returns the requests that were not answered yet, oldest first.
    pub async fn requests(&self, run: RunId) -> Result<Vec<Request>, StoreError> {
        let query = Statement::new("SELECT id, request, asked_by FROM requests WHERE run = $1 ORDER BY id").with(run);
        let rows = self.fetch(query).await?;
        rows.iter()
            .map(|row| {
                Ok(Request {
                    id: row.parsed(0)?,
                    text: row.text(1)?.to_owned(),
                    by: row.text_if_any(2)?.map(str::to_owned),
                })
            })
            .collect()
    }

    /// Removes a request after it was carried out, so that a crash before repeats the request
    /// instead of losing it.
    pub async fn answered(&self, request: Uuid) -> Result<(), StoreError> {
        self.execute(Statement::new("DELETE FROM requests WHERE id = $1").with(request))
            .await?;
        Ok(())
    }
}
