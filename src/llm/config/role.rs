//! The roles of models.

use serde::{Deserialize, Serialize};

/// The role in which a model is asked; each may have a model of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Planner,
    Worker,
    Reviewer,
    Summarizer,
    Chat,
    Classifier,
    LocalOnly,
}

impl Role {
    pub const ALL: [Self; 7] = [
        Self::Planner,
        Self::Worker,
        Self::Reviewer,
        Self::Summarizer,
        Self::Chat,
        Self::Classifier,
        Self::LocalOnly,
    ];

    /// Returns the role's name as it is written in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Planner => "planner",
            Self::Worker => "worker",
            Self::Reviewer => "reviewer",
            Self::Summarizer => "summarizer",
            Self::Chat => "chat",
            Self::Classifier => "classifier",
            Self::LocalOnly => "local_only",
        }
    }
}
