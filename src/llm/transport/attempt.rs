//! Failures of attempts to get a reply, and whether another attempt is made.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use chrono::Utc;

use crate::http::AttemptError;
use crate::http::remedy::Reason;
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
    /// No connection could be made.
    Away(Reason),
    /// The connection broke, or what came cannot be used.
    Broken(Reason),
    /// A reply broke off after its first event had come.
    CutOff(Reason),
    /// The server says itself that it did not finish the reply.
    GivenUp(Reason),
    TooSlow(Duration),
    /// A stream that had begun stopped.
    Silent(Duration),
    /// A stream did not end.
    Endless(Duration),
}

impl From<String> for AttemptFailure {
    fn from(reason: String) -> Self {
        Self::Broken(reason.into())
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

    /// Returns the failure to connect with what helps where nobody answers, unless it is known
    /// already what does.
    pub(super) fn of_connecting(self, is_connect: bool, info: &ServerInfo) -> Self {
        match self {
            Self::Broken(Reason { what, remedy }) if is_connect => Self::Away(Reason {
                what,
                remedy: remedy.or_else(|| Some(info.start_hint.clone())),
            }),
            failure => failure,
        }
    }
}

/// Decides whether a call that failed is made again, and when. `was_cut_off` keeps whether a reply
/// to the call broke off before, whoever broke it off: the second one that does is the last.
pub(super) fn after(
    failure: AttemptFailure,
    info: &ServerInfo,
    summary: RequestSummary,
    was_cut_off: &AtomicBool,
) -> AttemptError<LlmError> {
    let is_away = matches!(failure, AttemptFailure::Away(_));
    let step = match failure {
        AttemptFailure::Answered(response) => response.next_step(info, summary, Utc::now()),
        AttemptFailure::NotLocal(error) => NextStep::Final(error),
        AttemptFailure::CutOff(reason) if was_cut_off.swap(true, Relaxed) => {
            NextStep::Final(cut_off_again(info, &reason.what))
        }
        AttemptFailure::GivenUp(reason) if was_cut_off.swap(true, Relaxed) => {
            NextStep::Final(given_up_again(info, &reason.what))
        }
        AttemptFailure::Away(reason)
        | AttemptFailure::Broken(reason)
        | AttemptFailure::CutOff(reason)
        | AttemptFailure::GivenUp(reason) => NextStep::Again {
            after: Duration::ZERO,
            reason,
        },
        AttemptFailure::TooSlow(limit) => NextStep::Final(unreachable(
            info,
            Reason::with(
                format!("no reply within {} s", limit.as_secs()),
                "raise llm.timeout_seconds",
            ),
        )),
        AttemptFailure::Silent(limit) => NextStep::Final(unreachable(
            info,
            Reason::with(
                format!("in the middle of a reply it said nothing for {} s", limit.as_secs()),
                "raise llm.timeout_seconds",
            ),
        )),
        AttemptFailure::Endless(limit) => NextStep::Final(unreachable(
            info,
            Reason::with(
                format!("a reply took longer than {} s", limit.as_secs()),
                "raise llm.reply_seconds",
            ),
        )),
    };
    match step {
        NextStep::Final(error) => AttemptError::Final(error),
        NextStep::Slower { after } => AttemptError::Transient {
            error: LlmError::RateLimited {
                until: Utc::now() + after,
            },
            wait: after,
        },
        NextStep::Again { after, reason } => AttemptError::Transient {
            error: if is_away {
                away(info, reason)
            } else {
                unreachable(info, reason)
            },
            wait: after,
        },
    }
}

/// Returns the error of a call of which four attempts failed with `last`: a rate limit postpones
/// the run for a while.
pub(super) fn given_up(last: LlmError) -> LlmError {
    match last {
        LlmError::Unreachable {
            address,
            reason,
            is_away,
        } => {
            let what = format!("{} (tried four times)", reason.what);
            LlmError::Unreachable {
                address,
                reason: Reason { what, ..reason },
                is_away,
            }
        }
        LlmError::RateLimited { until } => LlmError::RateLimited {
            until: until.max(Utc::now() + UNKNOWN_RESET),
        },
        error => error,
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
    let what = format!(
        "a reply broke off after it had begun, and so did the one that was asked for in its place ({reason}): something between, \
         such as a proxy or gateway with a limit on how long a whole response may take, seems to cut replies off"
    );
    let remedy = format!(
        "the reply is not asked for again at once, since it would be made and paid again. Raise that limit, or set in {} an \
         address that leads past it",
        info.section
    );
    unreachable(info, Reason::with(what, remedy))
}

/// Returns the error for a call to which two replies broke off, the second of them by the server's
/// own word: nothing between is to blame for that.
fn given_up_again(info: &ServerInfo, reason: &str) -> LlmError {
    let remedy = format!(
        "the reply is not asked for again at once, since it would be made and paid again. Look at the server's log or at what \
         its provider says of it, or set another model in {}",
        info.section
    );
    let what = format!("{reason}, and the reply that was asked for before broke off, too");
    unreachable(info, Reason::with(what, remedy))
}

/// Returns the error for a server to which no connection can be made.
pub(super) fn away(info: &ServerInfo, reason: Reason) -> LlmError {
    LlmError::Unreachable {
        address: info.address.clone(),
        reason,
        is_away: true,
    }
}

/// Returns the error for a server that was reached, and gave no reply.
pub(super) fn unreachable(info: &ServerInfo, reason: impl Into<Reason>) -> LlmError {
    LlmError::Unreachable {
        address: info.address.clone(),
        reason: reason.into(),
        is_away: false,
    }
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;

    fn answered(status: StatusCode, retry_after: Option<u64>) -> AttemptFailure {
        AttemptFailure::Answered(ErrorResponse {
            status,
            retry_after: retry_after.map(Duration::from_secs),
            proxy: None,
            body: "busy".to_owned(),
        })
    }

    /// Returns the error that is told of an attempt that another one follows, and its pause.
    fn repeated(failure: AttemptFailure) -> (LlmError, Duration) {
        match after(
            failure,
            &ServerInfo::of_tests(),
            RequestSummary::default(),
            &AtomicBool::new(false),
        ) {
            AttemptError::Transient { error, wait } => (error, wait),
            AttemptError::Final(error) => panic!("{error}"),
        }
    }

    #[test]
    fn four_attempts_are_told_of_when_they_were_made() {
        let (first, _) = repeated(answered(StatusCode::BAD_GATEWAY, None));
        let told = "the model at http://model.test does not answer as it should: it answered 502 Bad Gateway: busy";
        assert_eq!(first.to_string(), told);
        assert_eq!(given_up(first).to_string(), format!("{told} (tried four times)"));
    }

    #[test]
    fn a_rate_limit_is_told_with_the_time_that_the_server_named() {
        let until = |error: &LlmError| match error {
            LlmError::RateLimited { until } => *until - Utc::now(),
            error => panic!("{error}"),
        };
        let (first, wait) = repeated(answered(StatusCode::TOO_MANY_REQUESTS, Some(2)));
        assert_eq!(wait, Duration::from_secs(2));
        let left = until(&first).num_milliseconds();
        assert!((0..=2_000).contains(&left), "{left} ms");
        // Who was refused four times is patient.
        let left = until(&given_up(first)).num_seconds();
        assert!((50..=60).contains(&left), "{left} s");
    }
}
