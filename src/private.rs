//! Lets only the program's own user read what it writes.
//!
//! Store, mirrors, journal, logs and outputs hold other people's source, conversations and private
//! repositories, so the modes do not depend on the mask that a shell, cron or a service manager
//! happens to set. Files in a folder of the user's are the exception: they get the modes that the
//! user's other files get.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::Mode;
use rustix::process::{geteuid, umask};

/// Permission bits of the group and of others.
const OTHERS: u32 = 0o077;

/// Deepest level that is closed; the program makes no folder below it.
const DEEPEST: usize = 64;

/// The mask of most systems; used if the real one was never recorded.
const USUAL_MASK: u32 = 0o022;

static MASK_OF_USER: OnceLock<u32> = OnceLock::new();

/// Keeps everything that this process and its children write from now on to their user. Call it
/// first of all, because the mask is that of the whole process.
pub fn keep_to_user() {
    let before = umask(Mode::RWXG | Mode::RWXO);
    let _ = MASK_OF_USER.set(before.bits());
}

/// Returns the mask that the program was started with, for files in its user's own folders.
pub fn mask_of_user() -> u32 {
    MASK_OF_USER.get().copied().unwrap_or(USUAL_MASK)
}

/// Removes the permissions of the group and of others on `path` and everything below it, and
/// returns how many files and folders were changed. Files of another user, links and their targets
/// stay as they are.
///
/// A folder that others cannot enter is not read, and each folder is closed last, so that a
/// repetition costs nothing, and an interrupted call can be repeated.
pub fn close_to_others(path: &Path) -> usize {
    close(path, DEEPEST)
}

fn close(path: &Path, deepest: usize) -> usize {
    let Ok(found) = path.symlink_metadata() else {
        return 0;
    };
    let is_own = found.uid() == geteuid().as_raw();
    if found.is_symlink() || !is_own || found.mode() & OTHERS == 0 {
        return 0;
    }
    let mut changed = 0;
    if found.is_dir() && deepest > 0 {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            changed += close(&entry.path(), deepest - 1);
        }
    }
    let closed = std::fs::set_permissions(path, Permissions::from_mode(found.mode() & 0o7700));
    changed + usize::from(closed.is_ok())
}

/// Tells whether users other than its owner may read the file.
pub fn is_open_to_others(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.mode() & 0o044 != 0)
}

/// Returns what lies at `path`, or the nearest folder above it where nothing does, and its owner,
/// if this process is root and the owner is another: neither could write what the other makes
/// there. The owner is named as `sudo -u` takes it.
pub fn owner_besides_root(path: &Path) -> Option<(PathBuf, String)> {
    let (place, owner) = owner(path)?;
    if !geteuid().is_root() || owner == 0 {
        return None;
    }
    let users = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = name_of(owner, &users).map(str::to_owned);
    Some((place, name.unwrap_or_else(|| format!("'#{owner}'"))))
}

/// Returns the nearest file or folder that exists, and its owner.
fn owner(path: &Path) -> Option<(PathBuf, u32)> {
    let path = std::path::absolute(path).ok()?;
    path.ancestors()
        .find_map(|place| Some((place.to_owned(), place.metadata().ok()?.uid())))
}

/// Returns the name of a user in the text of `/etc/passwd`.
fn name_of(id: u32, users: &str) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let number: u32 = fields.nth(1)?.parse().ok()?;
        (number == id).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_yet_belongs_to_the_owner_of_the_folder_above() {
        let folder = tempfile::tempdir().unwrap();
        let own = Some((folder.path().to_owned(), geteuid().as_raw()));
        assert_eq!(owner(folder.path()), own);
        assert_eq!(owner(&folder.path().join("a/b")), own);
        assert_eq!(owner(Path::new("/proc/1/nothing")), Some(("/proc/1".into(), 0)));
    }

    #[test]
    fn users_are_called_as_the_machine_calls_them() {
        let users = "root:x:0:0:root:/root:/bin/sh\n# broken\n+::\nagent:x:998:998::/var/lib/agent:/usr/sbin/nologin\n";
        let names = [0, 998, 4711].map(|id| name_of(id, users));
        assert_eq!(names, [Some("root"), Some("agent"), None]);
    }

    fn mode(path: &Path) -> u32 {
        path.symlink_metadata().unwrap().mode() & 0o777
    }

    #[test]
    fn what_is_below_is_closed_once_and_what_links_lead_to_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let (top, outside) = (folder.path().join("top"), folder.path().join("outside"));
        std::fs::create_dir_all(top.join("deep")).unwrap();
        for (path, bits) in [
            (top.join("deep/a"), 0o644),
            (top.join("deep/run"), 0o755),
            (outside.clone(), 0o644),
        ] {
            std::fs::write(&path, "x").unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(bits)).unwrap();
        }
        std::os::unix::fs::symlink(&outside, top.join("link")).unwrap();
        for path in [&top, &top.join("deep")] {
            std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        assert!(is_open_to_others(&outside));
        assert_eq!(close_to_others(&top), 4);
        assert_eq!([mode(&top), mode(&top.join("deep"))], [0o700; 2]);
        assert_eq!([mode(&top.join("deep/a")), mode(&top.join("deep/run"))], [0o600, 0o700]);
        assert_eq!(mode(&outside), 0o644);
        assert_eq!(close_to_others(&top), 0);
    }
}
