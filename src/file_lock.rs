//! Locks on files, each of which one process at a time has. The kernel releases a lock when its
//! holder dies.
//!
//! Nothing here waits: a wait in the kernel could not be cancelled.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// Opens the file of a lock, which is created if it is missing.
pub fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(path)
}

/// Locks the file at `path`, which is created if it is missing; `None` if somebody has it locked.
pub fn try_lock_at(path: &Path) -> io::Result<Option<File>> {
    let file = open(path)?;
    Ok(try_lock(&file)?.then_some(file))
}

/// Locks an open file; false if somebody has it locked.
pub fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_has_the_lock_and_what_the_file_holds_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        std::fs::write(&path, "who").unwrap();
        let first = try_lock_at(&path).unwrap();
        assert!(first.is_some());
        assert!(try_lock_at(&path).unwrap().is_none());
        drop(first);
        assert!(try_lock(&open(&path).unwrap()).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "who");
    }
}
