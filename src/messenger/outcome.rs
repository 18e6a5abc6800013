//! The outcome of a request to a messenger.

use std::time::Duration;

use bytes::Bytes;
use chrono::Utc;
use reqwest::{RequestBuilder, StatusCode};

use super::{LARGEST_ANSWER, LARGEST_PICTURE};
use crate::http::{self, BodyError};

/// Pause after a refusal that names none.
const USUAL_PAUSE: Duration = Duration::from_secs(5);

/// The outcome of sending a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The messenger has it, under this name where it gives one.
    Taken(Option<String>),
    /// The messenger certainly does not have it, and may be asked again after the pause.
    Later { pause: Duration, reason: String },
    /// It is not known whether the messenger has it.
    Unknown { reason: String },
    /// The messenger will never take it.
    Refused { reason: String },
    /// The token for a free answer is not valid any more; the text was not sent.
    NotAsReply,
    /// The message that was to be changed was deleted, or may not be changed any more.
    NotChangeable,
}

/// Why a request has no good answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    #[error("{reason}")]
    Later { pause: Duration, reason: String },
    #[error("{0}")]
    Unknown(String),
    /// The status and what the messenger says.
    #[error("{said} ({status})")]
    Refused { status: StatusCode, said: String },
    /// The program's login is not accepted until a person renews it. Taken for a refusal of the
    /// request, it would lose all that waits to be said.
    #[error("{said} ({status})")]
    LoggedOut { status: StatusCode, said: String },
}

impl Failure {
    /// Returns the outcome of what was to be said.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Later { pause, reason } => Outcome::Later { pause, reason },
            Self::Unknown(reason) => Outcome::Unknown { reason },
            Self::Refused { .. } => Outcome::Refused {
                reason: self.to_string(),
            },
            Self::LoggedOut { .. } => Outcome::Later {
                pause: USUAL_PAUSE,
                reason: self.to_string(),
            },
        }
    }

    /// Returns the outcome of what has its effect once however often it is asked for.
    pub(super) fn outcome_of_repeatable(self) -> Outcome {
        match self {
            Self::Unknown(reason) => Outcome::Later {
                pause: USUAL_PAUSE,
                reason,
            },
            known => known.outcome(),
        }
    }
}

/// Sends a request; returns the status and the body of every answer but those that ask to come
/// again soon, or leave open what was done.
pub(super) async fn send(request: RequestBuilder, what: &str) -> Result<(StatusCode, Bytes), Failure> {
    send_for(request, what, LARGEST_ANSWER).await
}

/// Fetches a picture of at most so many bytes as one may have.
pub(super) async fn fetch(request: RequestBuilder, what: &str) -> Result<Bytes, Failure> {
    let (status, body) = send_for(request, what, LARGEST_PICTURE).await?;
    if status == StatusCode::OK {
        return Ok(body);
    }
    Err(Failure::Refused {
        status,
        said: format!("{what}: status {status}"),
    })
}

async fn send_for(request: RequestBuilder, what: &str, most: usize) -> Result<(StatusCode, Bytes), Failure> {
    let mut response = request.send().await.map_err(|error| {
        let reason = format!("{what}: {}", http::reason(&error));
        if error.is_connect() || error.is_builder() {
            return Failure::Later {
                pause: USUAL_PAUSE,
                reason,
            };
        }
        Failure::Unknown(reason)
    })?;
    let status = response.status();
    if status == StatusCode::TOO_MANY_REQUESTS {
        let pause = http::retry_after(response.headers(), Utc::now()).unwrap_or(USUAL_PAUSE);
        let said = http::read_body(&mut response, most).await.unwrap_or_default();
        if is_used_up(&said) {
            return Ok((status, said));
        }
        return Err(Failure::Later {
            pause,
            reason: format!("{what}: it answers too many requests"),
        });
    }
    let body = http::read_body(&mut response, most).await;
    let body = body.map_err(|error| match error {
        BodyError::TooLong => Failure::Unknown(format!("{what}: the answer is longer than {most} bytes")),
        BodyError::Broken(_) => Failure::Unknown(format!("{what}: the answer broke off")),
    })?;
    if status.is_server_error() {
        return Err(Failure::Unknown(format!("{what}: status {status}")));
    }
    Ok((status, body))
}

/// Tells whether a 429 says that the messages of this month are used up, as LINE does: that is over
/// in days, not in seconds.
fn is_used_up(body: &[u8]) -> bool {
    String::from_utf8_lossy(body)
        .to_ascii_lowercase()
        .contains("monthly limit")
}
