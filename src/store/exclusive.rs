//! The lock that keeps two `run` commands from one state directory.

use std::fs::File;
use std::path::Path;

use super::StoreError;
use crate::file_lock::try_lock_at;

/// The proof that this is the only `run` on the state directory. Dropping it, like dying, lets the
/// next one in.
#[derive(Debug)]
pub struct ExclusiveRun {
    _lock: File,
}

/// Takes the state directory for one `run`; returns `None` if another process has it.
pub fn try_exclusive(state_dir: &Path) -> Result<Option<ExclusiveRun>, StoreError> {
    let path = state_dir.join("run.lock");
    let locked = std::fs::create_dir_all(state_dir).and_then(|()| try_lock_at(&path));
    match locked {
        Ok(lock) => Ok(lock.map(|lock| ExclusiveRun { _lock: lock })),
        Err(error) => Err(StoreError::unwritable(&path, &error)),
    }
}
