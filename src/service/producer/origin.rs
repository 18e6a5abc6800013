//! Takes restrictions and the named model over from an issue to the work on the pull/merge request
//! that the program opened for it. The request itself has neither the labels of its issue nor the
//! model that was named for that.

use super::AdmitError;
use crate::agent::record::Record;
use crate::agent::record::follow_up::Notes;
use crate::forge::ForgeError;
use crate::service::Service;
use crate::service::forges::Connected;
use crate::task::id::TaskId;

/// Number of the newest runs on the issue that are looked at.
const MOST_RUNS: u32 = 20;

/// Restrictions and choices that a run on a request takes over from the work that opened it.
#[derive(Debug, Default)]
pub(super) struct TakenOver {
    /// Rule that restricts the work to local models.
    pub(super) local_only: Option<String>,
    /// The model that plans and works.
    pub(super) model: Option<String>,
}

impl Service {
    /// Returns what a run of `task` takes over; nothing if the program did not open it.
    pub(super) async fn taken_over(&self, connected: &Connected, task: &TaskId) -> Result<TakenOver, AdmitError> {
        let store = &self.services.store;
        let Some(followed) = store.followed(task).await? else {
            return Ok(TakenOver::default());
        };
        let mut notes: Notes = serde_json::from_value(followed.notes).map_err(AdmitError::record)?;
        // Earlier versions did not note `local_only` and `model`, and a later run on the issue that
        // delivered nothing has noted nothing. Oldest first, because the last named model counts.
        let runs = store.runs(Some(&notes.origin), MOST_RUNS).await?;
        let mut is_known = true;
        for run in runs.iter().rev() {
            match Record::read(run) {
                Ok(record) => {
                    let request = record.request;
                    notes.made_under(request.local_only.as_deref(), request.model.as_deref());
                }
                Err(error) => {
                    tracing::warn!(%task, "not all is known of the work on {}: {error}", notes.origin);
                    is_known = false;
                }
            }
        }
        // Where confidentiality rules cover only part of the work, what cannot be read may have
        // been under them.
        let is_unsure = !is_known && self.services.models.confidential_part().is_some();
        let local_only = match notes.local_only {
            Some(rule) => Some(rule),
            None if is_unsure => Some(format!(
                "it cannot be read whether earlier work on {} was confidential",
                notes.origin
            )),
            None => self.rule_of_labels(connected, &notes.origin).await?,
        };
        Ok(TakenOver {
            local_only,
            model: notes.model,
        })
    }

    /// Returns the rule that work on an item is under for the labels that it has now.
    async fn rule_of_labels(&self, connected: &Connected, task: &TaskId) -> Result<Option<String>, AdmitError> {
        if self.config.llm.local_only_label.is_none() {
            return Ok(None);
        }
        match connected.forge.item(task).await {
            Ok(item) => Ok(self.services.models.local_only_rule(task.repository(), &item.labels)),
            Err(ForgeError::Gone { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}
