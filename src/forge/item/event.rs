//! Events in the history of an item, each with its author and time.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::account::Account;

/// The author and time of an action on an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ItemEvent {
    /// Login; empty if the account was deleted.
    pub by: String,
    #[serde(default)]
    pub by_id: Option<u64>,
    pub at: DateTime<Utc>,
}

impl ItemEvent {
    pub fn who(&self) -> Account<'_> {
        Account {
            login: &self.by,
            id: self.by_id,
        }
    }
}

/// One edit of an item after it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edit {
    pub what: EditedPart,
    pub event: ItemEvent,
}

/// The part of an item that was changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EditedPart {
    /// The title, the text, or the target branch.
    Text,
    /// The commits of the head branch.
    Head,
}

impl Edit {
    pub(crate) fn of_text(event: ItemEvent) -> Self {
        Self {
            what: EditedPart::Text,
            event,
        }
    }

    pub(crate) fn of_head(event: ItemEvent) -> Self {
        Self {
            what: EditedPart::Head,
            event,
        }
    }
}
