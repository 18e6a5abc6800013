//! Failures of calls to the engine.

use bollard::errors::Error;

/// The failure of a call, before it is known who must act.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The engine did not answer.
    Silent(String),
    /// The engine answered with an error.
    Refused { status: u16, message: String },
    /// Something else, e.g. an answer that cannot be read.
    Other(String),
}

impl Failure {
    /// Returns true if the object does not exist (404).
    pub(crate) fn is_absent(&self) -> bool {
        matches!(self, Self::Refused { status: 404, .. })
    }

    /// Returns true if the state of the object does not allow the call (409), e.g. a container that
    /// does not run.
    pub(crate) fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused { status: 409, .. })
    }

    /// Returns true if the engine answered with an error.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// Returns the engine's error message, if it answered with one.
    pub(crate) fn complaint(&self) -> Option<&str> {
        match self {
            Self::Refused { message, .. } => Some(message),
            Self::Silent(_) | Self::Other(_) => None,
        }
    }

    /// Returns the engine's text alone.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Silent(reason) | Self::Other(reason) | Self::Refused { message: reason, .. } => reason,
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::DockerResponseServerError { status_code, message } => Self::Refused {
                status: status_code,
                message,
            },
            Error::DockerStreamError { error } => Self::Other(error),
            Error::HyperLegacyError { .. }
            | Error::HyperResponseError { .. }
            | Error::IOError { .. }
            | Error::RequestTimeoutError
            | Error::SocketNotFoundError(_) => Self::Silent(why_not_connected(&error)),
            other => Self::Other(other.to_string()),
        }
    }
}

/// Returns the innermost cause; the outer texts only say that a client failed.
pub(super) fn why_not_connected(error: &Error) -> String {
    if let Error::UnsupportedURISchemeError { .. } = error {
        return "only unix:// and tcp:// addresses are supported".to_owned();
    }
    let mut innermost: &dyn std::error::Error = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}
