//! Refusals of file tools: a text that begins with a code for programs, followed by what the model
//! can do.

use std::io;

/// A refusal. No file was changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Fault {
    #[error("path_escape 400: {0}")]
    PathEscape(String),
    #[error("ext_not_allowed 400: {0}")]
    Extension(String),
    #[error("not_found 404: {0}")]
    NotFound(String),
    /// Something exists that must not, or more often than it may.
    #[error("exists 409: {0}")]
    Exists(String),
    #[error("too_large 413: {0}")]
    TooLarge(String),
    #[error("not_utf8 415: {0}")]
    NotUtf8(String),
    /// An error of the operating system, e.g. that the disk is full.
    #[error("failed 500: {0}")]
    Failed(String),
}

impl Fault {
    /// Returns the fault behind an error at `path`.
    pub(super) fn at(path: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound(format!("{path} does not exist; look with list_files")),
            io::ErrorKind::NotADirectory => Self::NotFound(format!("a part of {path} is a file, not a folder")),
            io::ErrorKind::IsADirectory => Self::Exists(format!("{path} is a folder")),
            io::ErrorKind::AlreadyExists => Self::Exists(format!(
                "{path} is there already; use mode overwrite, append, or str_replace"
            )),
            // The directory handle refuses with an error of its own; errors of the kernel have a
            // number.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => Self::escape(path),
            _ => Self::Failed(format!("{path}: {error}")),
        }
    }

    pub(super) fn escape(path: &str) -> Self {
        Self::PathEscape(format!("{path} leads out of the project; use a path inside it"))
    }
}
