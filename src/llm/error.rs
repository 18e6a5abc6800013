//! Errors of calls to a model, by who must act.

use chrono::{DateTime, Utc};

use crate::http::remedy::Reason;

/// The remedy where a model, or a filter of its provider, refuses a task.
pub(super) const REFUSAL_HINT: &str = "word the task otherwise, or choose another model";

/// Why no reply came. The variant says who must act.
#[derive(Debug, thiserror::Error)]
pub enum LlmError {
    /// The operator: key, model name, address or another setting.
    #[error("{what}; {hint}")]
    Refused { what: String, hint: String },
    /// The operator: the server cut the prompt silently.
    #[error("the prompt was truncated: about {sent} tokens were sent, the server counted {counted}; {hint}")]
    Truncated { sent: u64, counted: u64, hint: String },
    /// The program: the conversation does not fit the window.
    #[error(
        "the conversation needs about {needed} tokens and the model's window has room for {window}; split the task, \
         lower max_tokens if it is set, or use a model with a larger window and say so in its context_length"
    )]
    TooLong {
        needed: u64,
        /// The part of the window that a prompt may have.
        window: u64,
    },
    /// The operator: the server's window is smaller than the configured one.
    #[error(
        "the conversation needs about {needed} tokens, and the server's window has {window} although {configured} are \
         configured; {hint}"
    )]
    SmallWindow {
        needed: u64,
        window: u64,
        configured: u64,
        hint: String,
    },
    /// The program: the model or server does not take native tool calls; go on with JSON.
    #[error("the model does not take native tool calls: {0}")]
    ToolsUnsupported(String),
    /// The call may be repeated at `until`.
    #[error("the model's rate limit is reached until {}", .until.format("%Y-%m-%d %H:%M:%S UTC"))]
    RateLimited { until: DateTime<Utc> },
    /// The call may be repeated later: there was no answer after all retries.
    #[error("the model at {address} {}: {reason}", lacks_reply(*.is_away))]
    Unreachable {
        address: String,
        reason: Reason,
        /// Whether no connection to the server could be made at all. One that was asked may have
        /// worked on a reply, which is paid.
        is_away: bool,
    },
    /// The caller: the reply took longer than the caller lets it take.
    #[error("the model at {address} did not reply within {seconds} s")]
    TimedOut { address: String, seconds: u64 },
    /// The operator: confidential work goes only to a local server.
    #[error(
        "nothing was sent to the model at {address}: {rule}, so only a server on this machine, in a private network or in \
         llm.local_endpoints may be used, and {reason}; choose such a server in the section llm, or add its host to \
         llm.local_endpoints if it is one of yours"
    )]
    NotLocal {
        address: String,
        rule: String,
        reason: String,
    },
    /// The run was stopped while the model was thinking.
    #[error("the call was cancelled")]
    Cancelled,
}

/// Returns what is told of a model's server from which no reply came, behind its address.
pub fn lacks_reply(is_away: bool) -> &'static str {
    if is_away {
        "cannot be reached"
    } else {
        "does not answer as it should"
    }
}

impl LlmError {
    /// Tells whether a model that fails with this error cannot answer at all, while another may.
    /// Without native calls the same model goes on in JSON.
    pub(super) fn is_shortcoming(&self) -> bool {
        match self {
            Self::Refused { .. }
            | Self::Truncated { .. }
            | Self::TooLong { .. }
            | Self::SmallWindow { .. }
            | Self::NotLocal { .. } => true,
            Self::ToolsUnsupported(_)
            | Self::RateLimited { .. }
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Cancelled => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    #[test]
    fn only_a_server_to_which_there_is_no_connection_cannot_be_reached() {
        let told = |is_away| {
            let error = LlmError::Unreachable {
                address: "http://model.test".to_owned(),
                reason: Reason::with("it is so", "mend it"),
                is_away,
            };
            error.to_string()
        };
        assert_eq!(
            [true, false].map(told),
            [
                "the model at http://model.test cannot be reached: it is so; mend it",
                "the model at http://model.test does not answer as it should: it is so; mend it",
            ]
        );
    }

    #[test]
    fn the_end_of_a_rate_limit_has_no_fraction_of_a_second() {
        let until = DateTime::UNIX_EPOCH + TimeDelta::milliseconds(90_681);
        assert_eq!(
            LlmError::RateLimited { until }.to_string(),
            "the model's rate limit is reached until 1970-01-01 00:01:30 UTC"
        );
    }
}
