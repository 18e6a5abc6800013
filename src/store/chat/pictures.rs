//! Pictures that came with a request from a conversation, for the runs of the issue that was opened
//! for it: not every forge has a way to put them there.

use serde::{Deserialize, Serialize};

use crate::picture::Picture;
use crate::store::{Store, StoreError};
use crate::task::id::TaskId;

/// How the names begin under which they are kept; the task follows.
pub(super) const PICTURES: &str = "pictures of ";

/// Pictures without metadata, and whose they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandedOver {
    /// The account of whoever asked.
    pub from: String,
    pub pictures: Vec<Picture>,
}

pub(super) fn name_of(task: &TaskId) -> String {
    format!("{PICTURES}{task}")
}

impl Store {
    /// Keeps the pictures that came with the request for a task, in place of those before.
    pub async fn hand_over(&self, task: &TaskId, handed: &HandedOver) -> Result<(), StoreError> {
        let document = serde_json::to_string(handed).unwrap_or_default();
        self.note_once(&name_of(task), &document).await
    }

    /// Returns the pictures that came with the request for a task.
    pub async fn handed_over(&self, task: &TaskId) -> Result<HandedOver, StoreError> {
        let document = self.noted_once(&name_of(task)).await?;
        // Pictures of another version are gone.
        Ok(document
            .and_then(|document| serde_json::from_str(&document).ok())
            .unwrap_or_default())
    }
}
