//! Tells by the kernel's locks which workers are alive.
//!
//! Each open store is a worker with a locked file `<state_dir>/workers/<uuid>.lock`. The lock goes
//! when the process does, by KILL as well. A process id in the database instead would be taken for
//! alive when another process gets the same number, and a heartbeat alone makes everybody wait for
//! the expiry after each crash.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use async_trait::async_trait;
use uuid::Uuid;

use crate::store::StoreError;
use crate::store::engine::{Alive, Liveness};

/// This process's place among the workers. Dropping it, like dying, makes its leases claimable.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) id: Uuid,
    host: String,
    folder: PathBuf,
    _lock: File,
}

impl Worker {
    /// Takes a place in `folder`. The caller holds the opening lock, so that no sweeper sees the
    /// file before it is locked.
    pub(super) fn enter(folder: &Path) -> io::Result<Self> {
        let id = Uuid::now_v7();
        let lock = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(lock_file(folder, id))?;
        lock.try_lock().map_err(io::Error::from)?;
        Ok(Self {
            id,
            host: host(),
            folder: folder.to_owned(),
            _lock: lock,
        })
    }
}

#[async_trait]
impl Liveness for Worker {
    fn worker(&self) -> Uuid {
        self.id
    }

    fn host(&self) -> &str {
        &self.host
    }

    /// Tells by its lock file whether a worker is alive. A worker without one here is on another
    /// machine, or its file was swept after its death.
    async fn of(&self, worker: Uuid) -> Alive {
        if worker == self.id {
            return Alive::Yes;
        }
        // A file that cannot be opened proves nothing; taking the run away could make two workers
        // of one.
        look(&lock_file(&self.folder, worker)).unwrap_or(Alive::Yes)
    }

    async fn has_others(&self) -> Result<bool, StoreError> {
        others(&self.folder, self.id).map_err(|error| StoreError::unwritable(&self.folder, &error))
    }

    async fn bury(&self, worker: Uuid) {
        // It is only litter by now; the next start sweeps what could not be removed.
        let _ = std::fs::remove_file(lock_file(&self.folder, worker));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // Without the file others find this worker `Unseen` on their own host, which is as dead as
        // an unlocked file.
        let _ = std::fs::remove_file(lock_file(&self.folder, self.id));
    }
}

/// Removes the lock files of all dead workers. The caller holds the opening lock.
pub(super) fn sweep(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "lock") && look(&path)? == Alive::No {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Tells whether a living worker besides this one has a lock file here.
fn others(folder: &Path, worker: Uuid) -> io::Result<bool> {
    let own = lock_file(folder, worker);
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let is_lock = path.extension().is_some_and(|extension| extension == "lock");
        if is_lock && path != own && look(&path)? == Alive::Yes {
            return Ok(true);
        }
    }
    Ok(false)
}

pub(super) fn lock_file(folder: &Path, worker: Uuid) -> PathBuf {
    folder.join(format!("{worker}.lock"))
}

/// Tries a shared lock, so that two processes that try at once do not see each other.
fn look(path: &Path) -> io::Result<Alive> {
    let file = match OpenOptions::new().write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Alive::Unseen),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Alive::No),
        Err(TryLockError::WouldBlock) => Ok(Alive::Yes),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Returns the kernel's boot id: it is the same in all containers on one kernel, where host names
/// differ but locks are visible.
fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| "this machine".to_owned(), |id| id.trim().to_owned())
}
