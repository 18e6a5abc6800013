//! Failures of requests to a forge, before it is known what the request was for.
//!
//! The clients work with [`Failure`], which still knows the status and whether a write may have
//! happened; the callers of the forge get [`ForgeError`], which says who must act. [`Attempt`] is
//! the step between the two.

use std::error::Error;

use chrono::{DateTime, Utc};
use http::StatusCode;

use crate::forge::ForgeError;
use crate::http::page::{PAGE, is_page};
use crate::http::remedy::Reason;
use crate::plain;

/// The failure of a request.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The forge answered, and repeating would bring the same answer.
    #[error("the answer was {status}: {message}")]
    Answered { status: StatusCode, message: String },
    /// The forge refused for now, and a request may be repeated at `until`.
    #[error("rate limit reached until {}", .until.format("%Y-%m-%d %H:%M:%S UTC"))]
    Limited { until: DateTime<Utc> },
    /// There was no answer, a 5xx, or one that no write is taken for now. A write may have been
    /// carried out or not.
    #[error("{reason}")]
    Down { reason: Reason },
    /// An answer that this program does not understand.
    #[error("{reason}")]
    Unreadable { reason: String },
    /// The operator must change something before a request makes sense. The status is the one that
    /// fits best.
    #[error("something must be set up first")]
    Unprepared { status: StatusCode, remedy: String },
}

impl Failure {
    /// Returns the status of a final answer.
    pub(crate) fn status(&self) -> Option<StatusCode> {
        match self {
            Self::Answered { status, .. } => Some(*status),
            Self::Limited { .. } | Self::Down { .. } | Self::Unreadable { .. } | Self::Unprepared { .. } => None,
        }
    }

    /// Tells whether the forge says that the requested thing does not exist, or hides it.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self.status(), Some(StatusCode::NOT_FOUND | StatusCode::GONE))
    }

    /// Tells whether a final answer has `status` and a message that contains `words`, ignoring
    /// case.
    pub(crate) fn says(&self, status: StatusCode, words: &str) -> bool {
        match self {
            Self::Answered { status: had, message } => {
                *had == status && message.to_lowercase().contains(&words.to_lowercase())
            }
            Self::Limited { .. } | Self::Down { .. } | Self::Unreadable { .. } | Self::Unprepared { .. } => false,
        }
    }

    /// Tells whether it was a page that answered, which no API has.
    pub(crate) fn is_page(&self) -> bool {
        matches!(self, Self::Answered { message, .. } if message.starts_with(PAGE))
    }

    pub(crate) fn unreadable(reason: impl std::fmt::Display) -> Self {
        Self::Unreadable {
            reason: format!("the answer could not be read: {reason}"),
        }
    }
}

/// Describes an attempt for the text of its error.
pub(crate) struct Attempt<'a> {
    /// The platform, with the configured name where there is one.
    pub(crate) platform: &'a str,
    /// The attempt in words, such as "reading owner/repo#12".
    pub(crate) what: &'a str,
    /// The remedy if the forge refuses: the missing right, and where to grant it.
    pub(crate) remedy: &'a str,
    /// The remedy if the forge does not accept the token at all.
    pub(crate) renew: &'a str,
}

impl Attempt<'_> {
    /// Returns the error for `failure`. A 404 is reported as a missing right: forges hide what a
    /// token may not see.
    pub(crate) fn failed(&self, failure: Failure) -> ForgeError {
        let what = self.what.to_owned();
        match failure {
            Failure::Answered { status, message } => match status {
                StatusCode::UNAUTHORIZED => self.refused(status, &message, self.renew),
                StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => self.refused(status, &message, self.remedy),
                StatusCode::GONE => ForgeError::Gone { what },
                _ => ForgeError::Unexpected {
                    what,
                    reason: format!("{} answered {status}: {message}", self.platform),
                },
            },
            Failure::Limited { until } => ForgeError::RateLimited { what, until },
            Failure::Down { reason } => ForgeError::Unavailable {
                what,
                reason: reason.to_string(),
            },
            Failure::Unreadable { reason } => ForgeError::Unexpected { what, reason },
            Failure::Unprepared { status, remedy } => ForgeError::Refused {
                platform: self.platform.to_owned(),
                what,
                status: status.as_u16(),
                remedy,
            },
        }
    }

    fn refused(&self, status: StatusCode, message: &str, remedy: &str) -> ForgeError {
        ForgeError::Refused {
            platform: self.platform.to_owned(),
            what: self.what.to_owned(),
            status: status.as_u16(),
            remedy: format!("it says \"{message}\": {remedy}"),
        }
    }
}

/// Returns the messages of an error and its causes in one line, each once.
pub(crate) fn causes(error: &dyn Error) -> String {
    let mut messages: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let message = error.to_string();
        if !messages.iter().any(|known| known.contains(&message)) {
            messages.push(message);
        }
        next = error.source();
    }
    messages.join(": ")
}

/// Returns a forge's text, shortened and on one line, for an error.
pub(crate) fn one_line(text: &str) -> String {
    const LONGEST: usize = 300;
    if is_page(text.as_bytes()) {
        return PAGE.to_owned();
    }
    let words = plain::one_line(text);
    match words.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &words[..end]),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;

    fn attempt() -> Attempt<'static> {
        Attempt {
            platform: "GitHub",
            what: "reading owner/repo#1",
            remedy: "give the token the right.",
            renew: "make a new token.",
        }
    }

    fn answered(status: u16) -> Failure {
        Failure::Answered {
            status: StatusCode::from_u16(status).unwrap(),
            message: "No".to_owned(),
        }
    }

    #[test]
    fn each_refusal_says_what_to_do() {
        let texts = [401, 403, 404, 410, 422].map(|status| attempt().failed(answered(status)).to_string());
        assert_eq!(
            texts,
            [
                "reading owner/repo#1: GitHub answered 401; it says \"No\": make a new token.",
                "reading owner/repo#1: GitHub answered 403; it says \"No\": give the token the right.",
                "reading owner/repo#1: GitHub answered 404; it says \"No\": give the token the right.",
                "reading owner/repo#1: it does not exist any more",
                "reading owner/repo#1: GitHub answered 422 Unprocessable Entity: No",
            ]
        );
    }

    #[test]
    fn the_end_of_a_rate_limit_has_no_fraction_of_a_second() {
        let until = DateTime::UNIX_EPOCH + TimeDelta::milliseconds(90_681);
        let end = "rate limit reached until 1970-01-01 00:01:30 UTC";
        assert_eq!(Failure::Limited { until }.to_string(), end);
        assert_eq!(
            attempt().failed(Failure::Limited { until }).to_string(),
            format!("reading owner/repo#1: {end}")
        );
    }

    #[test]
    fn a_long_answer_becomes_one_short_line() {
        assert_eq!(one_line(" a\n b "), "a b");
        assert_eq!(one_line("<html><h1>502 Bad Gateway</h1></html>"), "(a page of HTML)");
        assert_eq!(one_line(&"ä".repeat(500)).chars().count(), 301);
    }
}
