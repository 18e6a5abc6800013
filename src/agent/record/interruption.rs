//! The reasons why a stage ends without its result; each determines how the run is finished.

use chrono::{DateTime, TimeDelta, Utc};

use crate::agent::record::message::Order;
use crate::agent::record::{EndWithoutFailure, Failure, FailureKind, PausedBy, Record};
use crate::environment::EnvironmentError;
use crate::forge::ForgeError;
use crate::llm::error::LlmError;
use crate::repository::RepositoryError;
use crate::store::StoreError;
use crate::task::command::Command;
use crate::tool::ToolError;
use crate::workspace::WORKSPACE;
use crate::workspace::error::WorkspaceError;

#[derive(Debug)]
pub enum Interruption {
    /// The run's work was cancelled. When the program stops, the run is saved and released, and the
    /// next process continues it; when the mailbox did it, its verdict is the reason.
    Cancelled,
    /// Trouble of the worker or a limit of a remote service: the run waits until the given time.
    Postponed { until: DateTime<Utc>, reason: String },
    /// The run cannot succeed: it ends with a comment and a label.
    Failed(Failure),
    /// The item was closed, deleted or withdrawn (label, assignee), or the run's wait expired.
    Withdrawn { reason: String, item_exists: bool },
    /// Another installation of the program finished the item: its labels are left as they are.
    FinishedElsewhere,
    /// Another installation has claimed the item on the forge: nothing is posted or pushed until it
    /// is done with it, or silent.
    ClaimedElsewhere { until: DateTime<Utc> },
    /// A person ended the run.
    Stopped { order: Order },
    /// A person, a pause of all runs or an exhausted budget pauses the run.
    Paused { by: PausedBy, order: Option<Box<Order>> },
    /// The container is gone; the run may continue in a new one.
    WorkspaceLost(String),
    /// The model does not support native tool calls: the conversation goes on with JSON, or starts
    /// again if it has no reply yet.
    NoNativeCalls(String),
    /// Another worker holds the lease: this one may change nothing and post nothing.
    Disowned(StoreError),
    /// The store cannot be written: the work stays in its container, and the run later resumes from
    /// what the store holds.
    Unsaved(StoreError),
}

impl Interruption {
    /// Returns the end of a run that was decided before, and could not be shown on the item yet.
    pub fn of_decided_end(record: &Record) -> Option<Self> {
        let failure = record.failure.clone().map(Self::Failed);
        failure.or_else(|| record.ending.clone().map(Self::from))
    }

    pub fn failed(text: impl Into<String>) -> Self {
        Self::Failed(Failure::of_task(text))
    }

    pub fn refused_by_policy(text: impl Into<String>) -> Self {
        Self::Failed(Failure {
            kind: FailureKind::Policy,
            ..Failure::of_task(text)
        })
    }

    /// Returns the failure of a run whose model's replies cannot be read, with what the operator
    /// can do about that.
    pub fn unreadable(text: impl Into<String>, remedy: String) -> Self {
        Self::Failed(Failure {
            kind: FailureKind::Unreadable,
            text: text.into(),
            remedy,
        })
    }

    /// Returns the interruption of a run that exceeded the limit described by `text`.
    pub fn limit(text: impl Into<String>) -> Self {
        Self::Paused {
            by: PausedBy::Limit(text.into()),
            order: None,
        }
    }

    /// Returns the interruption of a run that is to go on in so many minutes.
    pub fn postponed(minutes: i64, reason: impl Into<String>) -> Self {
        Self::Postponed {
            until: Utc::now() + TimeDelta::minutes(minutes),
            reason: reason.into(),
        }
    }
}

impl From<EndWithoutFailure> for Interruption {
    fn from(end: EndWithoutFailure) -> Self {
        match end {
            EndWithoutFailure::Withdrawn { reason } => Self::Withdrawn {
                reason,
                item_exists: true,
            },
            EndWithoutFailure::FinishedElsewhere => Self::FinishedElsewhere,
            EndWithoutFailure::Stopped { command, by, origin } => {
                let Ok(command) = command.parse::<Command>();
                Self::Stopped {
                    order: Order { command, by, origin },
                }
            }
        }
    }
}

impl From<StoreError> for Interruption {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LeaseLost(_) => Self::Disowned(error),
            StoreError::Away { .. } | StoreError::Database { .. } | StoreError::Unusable { .. } => Self::Unsaved(error),
        }
    }
}

impl From<ForgeError> for Interruption {
    fn from(error: ForgeError) -> Self {
        match error {
            ForgeError::Gone { .. } => Self::Withdrawn {
                reason: error.to_string(),
                item_exists: false,
            },
            ForgeError::RateLimited { until, .. } => Self::Postponed {
                until,
                reason: error.to_string(),
            },
            // A token that has expired, or was taken back, says nothing of the run. With the next
            // one it goes on, or its end is shown.
            ForgeError::Unavailable { .. } | ForgeError::Refused { status: 401, .. } => {
                Self::postponed(2, error.to_string())
            }
            ForgeError::Refused { .. } | ForgeError::Unexpected { .. } => Self::failed(error.to_string()),
        }
    }
}

impl From<LlmError> for Interruption {
    fn from(error: LlmError) -> Self {
        match error {
            LlmError::Cancelled => Self::Cancelled,
            LlmError::RateLimited { until } => Self::Postponed {
                until,
                reason: error.to_string(),
            },
            LlmError::Unreachable { .. } | LlmError::TimedOut { .. } => Self::postponed(2, error.to_string()),
            LlmError::ToolsUnsupported(reason) => Self::NoNativeCalls(reason),
            LlmError::NotLocal { .. } => Self::refused_by_policy(error.to_string()),
            LlmError::Refused { .. }
            | LlmError::Truncated { .. }
            | LlmError::TooLong { .. }
            | LlmError::SmallWindow { .. } => Self::failed(error.to_string()),
        }
    }
}

impl From<EnvironmentError> for Interruption {
    fn from(error: EnvironmentError) -> Self {
        match error {
            EnvironmentError::EngineUnavailable { .. }
            | EnvironmentError::EngineByPath { .. }
            | EnvironmentError::EngineTooOld { .. }
            | EnvironmentError::RegistryUnavailable { .. }
            | EnvironmentError::ClusterUnavailable { .. } => Self::postponed(2, error.to_string()),
            EnvironmentError::ContainerLost { .. } => Self::WorkspaceLost(error.to_string()),
            EnvironmentError::ImageMissing { .. }
            | EnvironmentError::NoRuntime { .. }
            | EnvironmentError::NoExecutor { .. }
            | EnvironmentError::ServiceNotReady { .. }
            | EnvironmentError::Unexpected { .. } => Self::failed(error.to_string()),
        }
    }
}

impl From<RepositoryError> for Interruption {
    fn from(error: RepositoryError) -> Self {
        match error {
            RepositoryError::Unavailable { .. } => Self::postponed(2, error.to_string()),
            RepositoryError::Unacceptable(_) | RepositoryError::TooSlow(_) => {
                Self::refused_by_policy(error.to_string())
            }
            RepositoryError::Refused { .. }
            | RepositoryError::ForceRefused { .. }
            | RepositoryError::Moved { .. }
            | RepositoryError::Unexpected { .. } => Self::failed(error.to_string()),
        }
    }
}

impl From<WorkspaceError> for Interruption {
    fn from(error: WorkspaceError) -> Self {
        match error {
            WorkspaceError::Environment(error) => error.into(),
            WorkspaceError::Repository(error) => error.into(),
            WorkspaceError::Tool(error) => error.into(),
            WorkspaceError::Cancelled => Self::Cancelled,
            WorkspaceError::OutsideRules(text) => Self::refused_by_policy(text),
            WorkspaceError::Uncommittable(text) | WorkspaceError::Failed(text) => Self::failed(text),
        }
    }
}

impl From<ToolError> for Interruption {
    fn from(error: ToolError) -> Self {
        match &error {
            ToolError::Away { .. } => Self::postponed(2, error.to_string()),
            ToolError::Lost { server, .. } if server == WORKSPACE => Self::WorkspaceLost(error.to_string()),
            ToolError::Lost { .. } => Self::failed(format!(
                "{error}; mend its entry in mcp_servers (`coding-agent doctor` tries each of them)"
            )),
            ToolError::Forbidden { .. } => Self::refused_by_policy(error.to_string()),
            ToolError::TellModel(_) => Self::failed(error.to_string()),
        }
    }
}
