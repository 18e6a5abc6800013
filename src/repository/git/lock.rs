//! Locks for a mirror's refs, which one process at a time may change.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep};

use crate::file_lock::try_lock_at;
use crate::repository::RepositoryError;

/// Waits for the lock at `path`, at most `patience`.
///
/// It polls instead of waiting in the kernel, which would need a thread that cannot be cancelled.
pub(in crate::repository) async fn wait(path: &Path, patience: Duration) -> Result<File, RepositoryError> {
    let end = Instant::now() + patience;
    loop {
        if let Some(lock) = try_lock_at(path).map_err(|error| at(path, &error))? {
            return Ok(lock);
        }
        if Instant::now() > end {
            return Err(RepositoryError::Unavailable {
                what: format!("the lock {}", path.display()),
                reason: "another run has been fetching the repository for very long; it is tried again later"
                    .to_owned(),
            });
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// Records on a lock that what it guards is being used.
pub(in crate::repository) fn note_use(lock: &File) {
    // Where the time cannot be set, what it guards looks unused and is made anew one day.
    let _ = lock.set_modified(SystemTime::now());
}

/// Returns the error for a file or folder of the program's that cannot be accessed.
pub(in crate::repository) fn at(path: &Path, error: &io::Error) -> RepositoryError {
    RepositoryError::Unexpected {
        what: path.display().to_string(),
        reason: format!("{error}; see that this user may write there and that the disk is not full"),
    }
}
