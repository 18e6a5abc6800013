//! When questions of runs were shown to people in their conversations.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::store::{Store, StoreError};
use crate::task::id::RunId;

/// Returns how the names begin under which the questions of a run are kept.
pub(super) fn names_of(run: RunId) -> String {
    format!("chat question {run} ")
}

fn name_of(run: RunId, question: Uuid) -> String {
    format!("{}{question}", names_of(run))
}

impl Store {
    /// Notes when a question of a run was shown, all of it, unless that is noted.
    pub async fn question_shown(&self, run: RunId, question: Uuid, at: DateTime<Utc>) -> Result<(), StoreError> {
        self.first_time(&name_of(run, question), &at.to_rfc3339()).await?;
        Ok(())
    }

    /// Returns when a question of a run was shown; `None` if nobody knows that it was.
    pub async fn shown_at(&self, run: RunId, question: Uuid) -> Result<Option<DateTime<Utc>>, StoreError> {
        let noted = self.noted_once(&name_of(run, question)).await?;
        Ok(noted.and_then(|at| at.parse().ok()))
    }
}
