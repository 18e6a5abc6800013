//! The producer: finds what people have labelled and writes it into the book, each item once.

use super::Service;
use super::forges::Connected;
use crate::agent::record::Record;
use crate::forge::{ForgeError, Triggered};
use crate::journal::fact::{Fact, Subject};
use crate::store::{Admission, StoreError};
use crate::task::id::RunId;

/// What one look at all forges brought.
#[derive(Debug, Default)]
pub struct Harvest {
    pub admitted: Vec<RunId>,
    /// What went wrong, a sentence each. The items concerned are found again at the next look.
    pub faults: Vec<String>,
}

impl Service {
    /// Looks once at all forges. A forge that fails does not keep the others from being looked at.
    pub async fn produce(&self) -> Harvest {
        let mut harvest = Harvest::default();
        for connected in self.forges.all() {
            let triggered = match connected.forge.triggered().await {
                Ok(triggered) => triggered,
                Err(error) => {
                    harvest.faults.push(error.to_string());
                    continue;
                }
            };
            for item in triggered {
                if self.stop.asked.is_cancelled() {
                    return harvest;
                }
                match self.admit(connected, &item).await {
                    Ok(Some(run)) => harvest.admitted.push(run),
                    Ok(None) => {}
                    Err(reason) => harvest.faults.push(format!("{}: {reason}", item.task)),
                }
            }
        }
        for fault in &harvest.faults {
            tracing::error!("{fault}");
            self.workshop
                .journal
                .record(&Subject::default(), Fact::Warned { text: fault.clone() });
        }
        harvest
    }

    /// The trigger goes last: an item is found again until it stands in the book and shows it, and is admitted no second
    /// time. The new label comes first: where labels may not be written nothing was begun.
    async fn admit(&self, connected: &Connected, item: &Triggered) -> Result<Option<RunId>, AdmitError> {
        if self.is_left_over(connected, item).await? {
            return Ok(None);
        }
        let record = Record {
            title: item.title.clone(),
            ..Record::default()
        };
        let record = serde_json::to_value(record).map_err(|error| AdmitError::Record(error.to_string()))?;
        let forge = &connected.forge;
        forge.add_label(&item.task, &connected.labels.processing).await?;
        let admission = self.workshop.store.admit(&item.task, &item.title, &record).await?;
        forge.remove_label(&item.task, &connected.labels.trigger).await?;
        let admission = match admission {
            // It ended meanwhile, so nothing would take the label off again: what was asked for is another run.
            Admission::Known(run) if self.is_over(run).await? => {
                self.workshop.store.admit(&item.task, &item.title, &record).await?
            }
            other => other,
        };
        self.bell.ring();
        match admission {
            Admission::Known(_) => Ok(None),
            Admission::New(run) => {
                let subject = Subject {
                    task: Some(item.task.clone()),
                    run: Some(run),
                };
                self.workshop.journal.record(
                    &subject,
                    Fact::Admitted {
                        title: item.title.clone(),
                    },
                );
                Ok(Some(run))
            }
        }
    }

    async fn is_over(&self, run: RunId) -> Result<bool, StoreError> {
        let run = self.workshop.store.run(run).await?;
        Ok(run.is_none_or(|run| run.state.is_final()))
    }

    /// Lists of items may be older than their labels. An item that was worked on before is looked at itself, so that a
    /// stale list never starts a second run.
    async fn is_left_over(&self, connected: &Connected, item: &Triggered) -> Result<bool, AdmitError> {
        if self.workshop.store.runs(Some(&item.task), 1).await?.is_empty() {
            return Ok(false);
        }
        let fresh = connected.forge.item(&item.task).await?;
        Ok(!fresh.is_open || !fresh.labels.contains(&connected.labels.trigger))
    }
}

#[derive(Debug, thiserror::Error)]
enum AdmitError {
    #[error(transparent)]
    Forge(#[from] ForgeError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("the run could not be written down: {0}")]
    Record(String),
}
