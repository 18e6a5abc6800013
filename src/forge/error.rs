//! Errors of a forge, for its callers.

use chrono::{DateTime, Utc};

/// Why a forge did not do what it was asked. The variant says who must act.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// The operator: the token or its rights. `remedy` says which right is missing and where to
    /// give it.
    #[error("{what}: {platform} answered {status}; {remedy}")]
    Refused {
        platform: String,
        what: String,
        status: u16,
        remedy: String,
    },
    /// Nobody can act: the item was deleted or moved away.
    #[error("{what}: it does not exist any more")]
    Gone { what: String },
    /// The request may be repeated at `until`.
    #[error("{what}: rate limit reached until {}", .until.format("%Y-%m-%d %H:%M:%S UTC"))]
    RateLimited { what: String, until: DateTime<Utc> },
    /// The request may be repeated later: the forge did not answer, or only with 5xx, after all
    /// retries.
    #[error("{what}: {reason}")]
    Unavailable { what: String, reason: String },
    /// The developers: the forge said something this program did not expect.
    #[error("{what}: {reason}")]
    Unexpected { what: String, reason: String },
}
