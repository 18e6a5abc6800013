//! Failures of calls to the engine.

use bollard::errors::Error;

use crate::environment::processes::Failure;
use crate::http::remedy::without_semicolons;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::DockerResponseServerError { status_code, message } => Self::Refused {
                status: status_code,
                message: without_semicolons(&message),
            },
            Error::DockerStreamError { error } => Self::Other(without_semicolons(&error)),
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
