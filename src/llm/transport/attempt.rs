//! Failures of attempts to get a reply, and whether another attempt is made.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
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
    /// The connection failed, or what came cannot be used.
    Broken(String),
    /// A reply broke off after its first event had come.
    CutOff(String),
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

impl AttemptFailure {
    /// Returns the failure as that of a reply that broke off, if its first event had come.
    pub(super) fn midway(self, has_come: bool) -> Self {
        match self {
            Self::Broken(reason) if has_come => Self::CutOff(reason),
            failure => failure,
        }
    }

    /// Returns the failure with what helps where nobody answers, unless its reason says already
    /// what does.
    pub(super) fn of_connecting(self, is_connect: bool, info: &ServerInfo) -> Self {
        match self {
            Self::Broken(reason) if is_connect && !reason.contains("; ") => {
                Self::Broken(format!("{reason}; {}", info.start_hint))
            }
            failure => failure,
        }
    }
}

/// Decides whether a call that failed is made again, and when. `was_cut_off` keeps whether a reply
/// to the call broke off before: the second one that does is the last.
pub(super) fn after(
    failure: AttemptFailure,
    info: &ServerInfo,
    summary: RequestSummary,
    was_cut_off: &AtomicBool,
) -> AttemptError<LlmError> {
    let step = match failure {
        AttemptFailure::Answered(response) => response.next_step(info, summary, Utc::now()),
        AttemptFailure::NotLocal(error) => NextStep::Final(error),
        AttemptFailure::CutOff(reason) if was_cut_off.swap(true, Relaxed) => {
            NextStep::Final(cut_off_again(info, &reason))
        }
        AttemptFailure::Broken(reason) | AttemptFailure::CutOff(reason) => NextStep::Again {
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
            error: unreachable(info, tried_four_times(&reason)),
            wait: after,
        },
    }
}

/// Returns the reason for which four attempts failed. Their number stands before the remedy, if
/// there is one after a semicolon.
fn tried_four_times(reason: &str) -> String {
    match reason.split_once("; ") {
        Some((what, remedy)) => format!("{what} (tried four times); {remedy}"),
        None => format!("{reason} (tried four times)"),
    }
}

pub(super) fn not_local(info: &ServerInfo, network: &PrivateNetworkResolver, found: &PublicAddress) -> LlmError {
    LlmError::NotLocal {
        address: info.address.clone(),
        rule: network.rule.clone(),
        reason: found.to_string(),
    }
}

/// Returns the error for a call to which two replies broke off: a third one would most likely be
/// made and paid in vain, too.
fn cut_off_again(info: &ServerInfo, reason: &str) -> LlmError {
    let reason = format!(
        "a reply broke off after it had begun, and so did the one that was asked for in its place ({reason}): something between, \
         such as a proxy or gateway with a limit on how long a whole response may take, seems to cut replies off; the reply is \
         not asked for again at once, since it would be made and paid again. Raise that limit, or set in {} an address that \
         leads past it",
        info.section
    );
    unreachable(info, reason)
}

pub(super) fn unreachable(info: &ServerInfo, reason: String) -> LlmError {
    LlmError::Unreachable {
        address: info.address.clone(),
        reason,
    }
}
