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

/// The note under the name of a question of which a part was not shown; no time.
const IN_PART: &str = "in part";

impl Store {
    /// Notes when a question of a run was shown, all of it, unless something is noted of it.
    pub async fn question_shown(&self, run: RunId, question: Uuid, at: DateTime<Utc>) -> Result<(), StoreError> {
        self.first_time(&name_of(run, question), &at.to_rfc3339()).await?;
        Ok(())
    }

    /// Notes that a part of a question will never be shown, so that what comes of its other parts
    /// does not count any more.
    pub async fn question_shown_in_part(&self, run: RunId, question: Uuid) -> Result<(), StoreError> {
        self.first_time(&name_of(run, question), IN_PART).await?;
        Ok(())
    }

    /// Returns when a question of a run was shown, all of it; `None` if nobody knows that it was.
    pub async fn shown_at(&self, run: RunId, question: Uuid) -> Result<Option<DateTime<Utc>>, StoreError> {
        let noted = self.noted_once(&name_of(run, question)).await?;
        Ok(noted.and_then(|at| at.parse().ok()))
    }
}
