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
}

impl Store {
    /// Stores a request for whoever works on the run, now or later. The words are the caller's.
    pub async fn ask(&self, run: RunId, request: &str) -> Result<(), StoreError> {
        let insert =
            Statement::new("INSERT INTO requests (id, run, request) VALUES ($1, $2, $3) ON CONFLICT (id) DO NOTHING");
        self.execute(insert.with(Uuid::now_v7()).with(run).with(request))
            .await?;
        Ok(())
    }

    /// Returns the requests that were not answered yet, oldest first.
    pub async fn requests(&self, run: RunId) -> Result<Vec<Request>, StoreError> {
        let query = Statement::new("SELECT id, request FROM requests WHERE run = $1 ORDER BY id").with(run);
        let rows = self.fetch(query).await?;
        rows.iter()
            .map(|row| {
                Ok(Request {
                    id: row.parsed(0)?,
                    text: row.text(1)?.to_owned(),
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
