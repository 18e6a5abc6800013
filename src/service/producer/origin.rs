//! What the work on a pull/merge request that the program opened takes over from the work that
//! opened it. The request itself has neither the labels of its issue nor the model that was named
//! for that.

use super::AdmitError;
use crate::agent::record::Record;
use crate::agent::record::follow_up::Notes;
use crate::forge::ForgeError;
use crate::service::Service;
use crate::service::forges::Connected;
use crate::task::id::TaskId;

/// What is taken over.
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
        // Earlier versions noted neither, and a later run on the issue that delivered nothing has
        // noted nothing.
        if let Some(newest) = store.runs(Some(&notes.origin), 1).await?.pop() {
            let request = Record::read(&newest)?.request;
            notes.made_under(request.local_only.as_deref(), request.model.as_deref());
        }
        let local_only = match notes.local_only {
            Some(rule) => Some(rule),
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
