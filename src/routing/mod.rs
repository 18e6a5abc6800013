//! The routing of messages from a chat: which of six routes a message takes, and who decided on it.
//!
//! Pure and driven by data. Of four ways to decide the first that has an answer counts: a command
//! at the beginning of a line; the dictionary of rules, which holds strong evidence alone; one
//! question to the classifier; CHAT. A model proposes at most, and never decides: what it says is
//! held against thresholds and against the message itself.
//!
//! Modules in reading order.

pub mod text; // a message as it is compared: folded, and without what it only quotes
pub mod command; // commands at the beginning of a line
pub mod rules; // the dictionary
pub mod classifier; // the question to the classifier, and how its answer is read
pub mod decision; // the decision
pub mod worker; // what a worker answers
pub mod flow; // how often, and where to, a message goes on
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The route of a message: who works on it, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Route {
    /// The chat model answers.
    Chat,
    /// A worker looks at the repository and proposes steps.
    Plan,
    /// A worker looks at the repository and explains what is there.
    Analyze,
    /// A command of the configured list is run.
    Ops,
    /// A worker gathers what the repository tells about a question.
    Research,
    /// An issue is opened, which is worked on as every other.
    Code,
}

impl Route {
    pub const ALL: [Self; 6] = [
        Self::Chat,
        Self::Plan,
        Self::Analyze,
        Self::Ops,
        Self::Research,
        Self::Code,
    ];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "CHAT",
            Self::Plan => "PLAN",
            Self::Analyze => "ANALYZE",
            Self::Ops => "OPS",
            Self::Research => "RESEARCH",
            Self::Code => "CODE",
        }
    }

    /// Tells whether something is done on this route that other people see.
    pub const fn has_effects(self) -> bool {
        matches!(self, Self::Ops | Self::Code)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// The error for a word that is no route.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no route; there are CHAT, PLAN, ANALYZE, OPS, RESEARCH and CODE")]
pub struct NoRoute(String);

impl FromStr for Route {
    type Err = NoRoute;

    fn from_str(text: &str) -> Result<Self, NoRoute> {
        let found = Self::ALL.into_iter().find(|route| route.as_str() == text);
        found.ok_or_else(|| NoRoute(text.chars().take(40).collect()))
    }
}
