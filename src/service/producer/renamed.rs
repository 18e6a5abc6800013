//! An item keeps the name that it has in the store when its repository is renamed, or moves to
//! another owner.
//!
//! A search names items by what their repositories are called now. Taken for other items, those
//! under way would get second runs, which hear the same commands, write to the same branch and take
//! the claim on the forge from one another; and a request that is followed would lose the
//! restrictions of the work that opened it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use chrono::Utc;

use super::AdmitError;
use crate::forge::{ForgeError, FoundItem};
use crate::service::Service;
use crate::service::forges::Connected;
use crate::task::id::{HostName, TaskId};

/// What repositories are called now, by the names in the ids of tasks. It is forgotten with each
/// search, because an answer from before a repository was renamed would be wrong; within one a
/// repository is asked for once, however many items are found.
#[derive(Default)]
pub(in crate::service) struct PresentNames {
    /// Empty where it cannot be told.
    told: Mutex<HashMap<(HostName, String), String>>,
}

impl PresentNames {
    pub(super) fn forget(&self) {
        self.told.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn of(&self, repository: &(HostName, String)) -> Option<String> {
        let told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.get(repository).cloned()
    }

    fn learn(&self, repository: (HostName, String), name: &str) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        told.insert(repository, name.to_owned());
    }
}

impl Service {
    /// Returns the item with the name under which the store has it. A forge answers to the earlier
    /// names of a repository, so the work goes on under that.
    pub(super) async fn as_known(&self, connected: &Connected, found: &FoundItem) -> Result<FoundItem, AdmitError> {
        let store = &self.services.store;
        let Some(item) = found.task.item() else {
            return Ok(found.clone());
        };
        let is_known =
            store.unfinished_of(&found.task).await?.is_some() || store.followed(&found.task).await?.is_some();
        if is_known {
            return Ok(found.clone());
        }
        for namesake in store.namesakes(item).await? {
            let name = match self.present_name(connected, &namesake).await {
                Ok(name) => name,
                Err(error) => {
                    if is_limited_elsewhere(connected, &found.task, &error).await? {
                        continue;
                    }
                    return Err(error.into());
                }
            };
            if name.eq_ignore_ascii_case(&item.repository) {
                tracing::info!(task = %namesake, "its repository is called {} now", item.repository);
                return Ok(FoundItem {
                    task: namesake,
                    ..found.clone()
                });
            }
        }
        Ok(found.clone())
    }

    /// Returns what the task's repository is called now; nothing if that cannot be told. One that
    /// cannot be seen by its earlier name cannot be worked on by it either.
    async fn present_name(&self, connected: &Connected, task: &TaskId) -> Result<String, ForgeError> {
        let Some(item) = task.item() else {
            return Ok(String::new());
        };
        let repository = (item.host.clone(), item.repository.clone());
        if let Some(name) = self.present_names.of(&repository) {
            return Ok(name);
        }
        let name = match connected.forge.repository_now(task).await {
            Ok(name) => name.unwrap_or_default(),
            Err(error @ (ForgeError::RateLimited { .. } | ForgeError::Unavailable { .. })) => return Err(error),
            Err(error @ (ForgeError::Refused { .. } | ForgeError::Gone { .. } | ForgeError::Unexpected { .. })) => {
                tracing::info!(%task, "it is not known what its repository is called now: {error}");
                String::new()
            }
        };
        self.present_names.learn(repository, &name);
        Ok(name)
    }
}

/// Returns true if a repository could not be asked for because of a limit that does not hold for
/// that of `found`. Limits are those of a token, or of an installation of an App, which is on all
/// repositories of an owner; so the two are not one repository under two names.
async fn is_limited_elsewhere(connected: &Connected, found: &TaskId, error: &ForgeError) -> Result<bool, ForgeError> {
    let ForgeError::RateLimited { until, .. } = error else {
        return Ok(false);
    };
    // Asked anew: an answer from before the limit was reached says nothing.
    connected.forge.repository_now(found).await?;
    Ok(Utc::now() < *until)
}
