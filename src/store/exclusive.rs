//! The lock that keeps two `run` commands from one state directory.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

use super::StoreError;

/// The proof that this is the only `run` on the state directory. Dropping it, like dying, lets the
/// next one in.
#[derive(Debug)]
pub struct ExclusiveRun {
    _lock: File,
}

/// Takes the state directory for one `run`; returns `None` if another process has it.
pub fn try_exclusive(state_dir: &Path) -> Result<Option<ExclusiveRun>, StoreError> {
    let path = state_dir.join("run.lock");
    let locked = std::fs::create_dir_all(state_dir).and_then(|()| try_lock_file(&path));
    match locked {
        Ok(lock) => Ok(lock.map(|lock| ExclusiveRun { _lock: lock })),
        Err(error) => Err(StoreError::unwritable(&path, &error)),
    }
}

/// Locks a file, which is created if it is missing; `None` if another process has it locked.
pub(super) fn try_lock_file(path: &Path) -> io::Result<Option<File>> {
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
