//! Who is alive, as the kernel tells it.
//!
//! Each open store is a worker with a locked file `<state_dir>/workers/<uuid>.lock`. The lock goes
//! when the process does, by KILL as well. A process id in the database instead would be taken for
//! alive when another process gets the same number, and a heartbeat alone makes everybody wait for
//! the expiry after each crash.

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

/// This process's place among the workers. Dropping it, like dying, makes its leases claimable.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) id: Uuid,
    /// Tells machines apart whose locks do not see each other.
    pub(super) host: String,
    /// The leases that are in somebody's hands in this process.
    pub(super) held: Held,
    folder: PathBuf,
    _lock: File,
}

/// The tokens of living leases. Shared with each [`Holding`], which outlives the worker without
/// keeping its lock.
#[derive(Debug, Clone, Default)]
pub(super) struct Held(Arc<Mutex<HashSet<Uuid>>>);

/// One entry of [`Held`]; goes when it is dropped, so that a panicked task frees its run.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) token: Uuid,
    held: Held,
}

/// What the lock file of a worker says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Liveness {
    Alive,
    Dead,
    /// The worker has no lock file here: it is on another machine, or its file was swept after its
    /// death.
    Unseen,
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
            held: Held::default(),
            folder: folder.to_owned(),
            _lock: lock,
        })
    }

    /// Tells whether another worker lives. A shared lock is tried, so that two who look at once do
    /// not see each other.
    pub(super) fn liveness(&self, worker: Uuid) -> Liveness {
        if worker == self.id {
            return Liveness::Alive;
        }
        match look(&lock_file(&self.folder, worker)) {
            Ok(liveness) => liveness,
            // A file that cannot be opened proves nothing; taking the run away could make two
            // workers of one.
            Err(_) => Liveness::Alive,
        }
    }

    /// Tells whether a living worker besides this one has a lock file here.
    pub(super) fn has_others(&self) -> io::Result<bool> {
        let own = lock_file(&self.folder, self.id);
        for entry in std::fs::read_dir(&self.folder)? {
            let path = entry?.path();
            let is_lock = path.extension().is_some_and(|extension| extension == "lock");
            if is_lock && path != own && look(&path)? == Liveness::Alive {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Removes the lock file of a dead worker.
    pub(super) fn bury(&self, worker: Uuid) {
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

impl Held {
    /// Takes up a new lease, before it is written: a claim in another task must not take it for an
    /// orphan.
    pub(super) fn take_up(&self) -> Holding {
        let token = Uuid::new_v4();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(token);
        Holding {
            token,
            held: self.clone(),
        }
    }

    pub(super) fn contains(&self, token: &Uuid) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(token)
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.held
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.token);
    }
}

/// Removes the lock files of all dead workers. The caller holds the opening lock.
pub(super) fn sweep(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "lock") && look(&path)? == Liveness::Dead {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

fn lock_file(folder: &Path, worker: Uuid) -> PathBuf {
    folder.join(format!("{worker}.lock"))
}

fn look(path: &Path) -> io::Result<Liveness> {
    let file = match OpenOptions::new().write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Liveness::Unseen),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Liveness::Dead),
        Err(TryLockError::WouldBlock) => Ok(Liveness::Alive),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// The kernel's boot id: the same in all containers on one kernel, where host names differ and
/// locks are seen all the same.
fn host() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| "this machine".to_owned(), |id| id.trim().to_owned())
}
