//! Why the index gives no answer. It is never a reason to end a run.

use std::path::Path;

use crate::repository::RepositoryError;

/// Why the index gives no answer.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The file is damaged, or is no index; it may be removed and made anew.
    #[error("the code index {file} is damaged ({reason}); it is made anew when it is needed next")]
    Damaged { file: String, reason: String },
    /// The file cannot be used now.
    #[error("the code index {file} cannot be used: {reason}")]
    Unusable { file: String, reason: String },
    /// The repository cannot be read.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
}

const FULL: &str = "the disk is full: free some space";
/// `SQLITE_IOERR_SHMSIZE`.
const SHARED_MEMORY: u32 = 4_874;

/// Returns the extended code of an error of `SQLite`, whose low byte is its kind.
fn code_of(error: &sqlx::Error) -> Option<u32> {
    error.as_database_error()?.code()?.parse().ok()
}

impl IndexError {
    /// Tells whether another process keeps the file locked.
    pub(super) fn is_locked(error: &sqlx::Error) -> bool {
        matches!(code_of(error).map(|code| code & 0xff), Some(5 | 6))
    }

    pub(super) fn of(file: &Path, error: &sqlx::Error) -> Self {
        let file = file.display().to_string();
        let code = code_of(error);
        let reason = error.to_string();
        if matches!(error, sqlx::Error::Decode(_)) {
            return Self::Damaged { file, reason };
        }
        let mend = match code.map(|code| code & 0xff) {
            Some(1 | 11 | 26) => return Self::Damaged { file, reason },
            _ if Self::is_locked(error) => "another process keeps it locked; it is used again when that has ended",
            // The second code: the memory that the processes share got no room on a full disk.
            Some(13) => FULL,
            _ if code == Some(SHARED_MEMORY) => FULL,
            Some(3 | 8 | 14) => "this user may not write there: give it the right to, or remove the file",
            Some(10) => "the disk gave an input/output error: look at the system's log",
            _ => return Self::Unusable { file, reason },
        };
        Self::Unusable {
            file,
            reason: format!("{reason}; {mend}"),
        }
    }
}

/// Returns the error of bytes that are not what the index writes.
pub(super) fn unreadable(what: &str) -> sqlx::Error {
    sqlx::Error::Decode(format!("{what} cannot be read").into())
}
