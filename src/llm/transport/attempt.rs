//! Failures of attempts to get a reply, and whether another attempt is made.

use std::time::Duration;

use chrono::Utc;

use crate::http::AttemptError;
use crate::llm::error::LlmError;
use crate::llm::local_only::private_network::{PrivateNetworkResolver, PublicAddress};
use crate::llm::transport::error_response::{ErrorResponse, NextStep, RequestSummary};
use crate::llm::transport::server_info::ServerInfo;

/// Time for which a rate limit without a known reset postpones the run after the retries.
const UNKNOWN_RESET: Duration = Duration::from_mins(1);

/// The failure of one attempt.
pub(super) enum AttemptFailure {
    NotLocal(LlmError),
    Answered(ErrorResponse),
    Broken(String),
    TooSlow(Duration),
    /// A stream that had begun stopped.
    Silent(Duration),
    /// A stream did not end.
    Endless(Duration),
}

impl From<String> for AttemptFailure {
    fn from(reason: String) -> Self {
        Self::Broken(reason)
    }
}

/// Decides whether a call that failed is made again, and when.
pub(super) fn after(failure: AttemptFailure, info: &ServerInfo, summary: RequestSummary) -> AttemptError<LlmError> {
    let step = match failure {
        AttemptFailure::Answered(response) => response.next_step(info, summary, Utc::now()),
        AttemptFailure::NotLocal(error) => NextStep::Final(error),
        AttemptFailure::Broken(reason) => NextStep::Again {
            after: Duration::ZERO,
            reason,
        },
        AttemptFailure::TooSlow(limit) => NextStep::Final(unreachable(
            info,
            format!("no reply within {} s; raise llm.timeout_seconds", limit.as_secs()),
        )),
        AttemptFailure::Silent(limit) => NextStep::Final(unreachable(
            info,
            format!(
                "in the middle of a reply it said nothing for {} s; raise llm.timeout_seconds",
                limit.as_secs()
            ),
        )),
        AttemptFailure::Endless(limit) => NextStep::Final(unreachable(
            info,
            format!(
                "a reply took longer than {} s; raise llm.reply_seconds",
                limit.as_secs()
            ),
        )),
    };
    match step {
        NextStep::Final(error) => AttemptError::Final(error),
        NextStep::Slower { after } => AttemptError::Transient {
            error: LlmError::RateLimited {
                until: Utc::now() + after.max(UNKNOWN_RESET),
            },
            wait: after,
        },
        NextStep::Again { after, reason } => AttemptError::Transient {
            error: unreachable(info, format!("{reason} (tried four times)")),
            wait: after,
        },
    }
}

pub(super) fn not_local(info: &ServerInfo, network: &PrivateNetworkResolver, found: &PublicAddress) -> LlmError {
    LlmError::NotLocal {
        address: info.address.clone(),
        rule: network.rule.clone(),
        reason: found.to_string(),
    }
}

pub(super) fn unreachable(info: &ServerInfo, reason: String) -> LlmError {
    LlmError::Unreachable {
        address: info.address.clone(),
        reason,
    }
}
