//! Keeps objects from a container apart from the mirror's own until they are judged.
//!
//! As git does for pushes, new objects are written to a separate folder with the mirror's as
//! "alternate". The folder is removed when the [`Quarantine`] is dropped; after a crash the next
//! fetch finds its lock free and removes it.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::repository::RepositoryError;
use crate::repository::git::command::Git;
use crate::repository::git::lock;
use crate::repository::mirror::Mirror;
use crate::repository::missing::{entries, unless_missing};

#[derive(Debug)]
pub(in crate::repository) struct Quarantine {
    path: PathBuf,
    mirror: PathBuf,
    lock_path: PathBuf,
    _lock: File,
}

impl Quarantine {
    pub(in crate::repository) fn make(mirror: &Path) -> io::Result<Self> {
        let folder = mirror.join("quarantine");
        std::fs::create_dir_all(&folder)?;
        let id = Uuid::now_v7().to_string();
        // The name that [`clear_up`] looks for appears only after the lock is taken.
        let (fresh, lock_path) = (folder.join(format!("{id}.new")), folder.join(format!("{id}.lock")));
        let lock = File::create_new(&fresh)?;
        lock.try_lock().map_err(io::Error::from)?;
        std::fs::rename(&fresh, &lock_path)?;
        let quarantine = Self {
            path: folder.join(id),
            mirror: mirror.to_owned(),
            lock_path,
            _lock: lock,
        };
        std::fs::create_dir_all(quarantine.path.join("pack"))?;
        Ok(quarantine)
    }

    /// Makes git write here and read from the mirror as well. Its temporary files, such as a commit
    /// to be signed, are here too and are removed with the rest.
    pub(in crate::repository) fn within<'a>(&self, git: Git<'a>) -> Git<'a> {
        git.env("GIT_OBJECT_DIRECTORY", &self.path)
            .env("TMPDIR", &self.path)
            .env(
                "GIT_ALTERNATE_OBJECT_DIRECTORIES",
                alternate(&self.mirror.join("objects")),
            )
    }
}

impl Drop for Quarantine {
    fn drop(&mut self) {
        // On failure the next fetch removes it.
        let _ = std::fs::remove_dir_all(&self.path);
        let _ = std::fs::remove_file(&self.lock_path);
    }
}

/// Quotes a folder for git's list of alternates: a path may contain the separator.
pub(in crate::repository) fn alternate(path: &Path) -> std::ffi::OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut quoted = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            0..0x20 | 0x7f => quoted.extend(format!("\\{byte:03o}").bytes()),
            _ => quoted.push(*byte),
        }
    }
    quoted.push(b'"');
    std::ffi::OsString::from_vec(quoted)
}

impl Mirror {
    /// Removes the leftovers of killed processes. The caller holds the lock, so nobody fetches or
    /// changes refs.
    pub(in crate::repository) async fn clear_up(&self) -> Result<(), RepositoryError> {
        let path = self.path().clone();
        let swept = tokio::task::spawn_blocking(move || remove_leftovers(&path)).await;
        match swept {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(lock::at(self.path(), &error)),
            Err(error) => Err(lock::at(self.path(), &std::io::Error::other(error))),
        }
    }
}

fn remove_leftovers(mirror: &Path) -> io::Result<()> {
    for name in ["HEAD.lock", "packed-refs.lock", "config.lock", "shallow.lock"] {
        unless_missing(std::fs::remove_file(mirror.join(name)))?;
    }
    remove_files(&mirror.join("refs"), &|name| name.as_bytes().ends_with(b".lock"))?;
    remove_files(&mirror.join("objects").join("pack"), &|name| name.starts_with("tmp_"))?;
    for entry in entries(&mirror.join("quarantine"))? {
        let lock_path = entry.path();
        if lock_path.extension().is_none_or(|extension| extension != "lock") {
            continue;
        }
        let free = match File::open(&lock_path).map(|lock| lock.try_lock_shared()) {
            Ok(Ok(())) => true,
            Ok(Err(TryLockError::WouldBlock | TryLockError::Error(_))) | Err(_) => false,
        };
        if free {
            // A git of the dead process may still be writing; then the next fetch removes the rest.
            if std::fs::remove_dir_all(lock_path.with_extension("")).is_ok() {
                unless_missing(std::fs::remove_file(&lock_path))?;
            }
        }
    }
    Ok(())
}

fn remove_files(folder: &Path, is_litter: &dyn Fn(&str) -> bool) -> io::Result<()> {
    for entry in entries(folder)? {
        if entry.file_type()?.is_dir() {
            remove_files(&entry.path(), is_litter)?;
        } else if entry.file_name().to_str().is_some_and(is_litter) {
            unless_missing(std::fs::remove_file(entry.path()))?;
        }
    }
    Ok(())
}
