//! Paths that are in no answer because somebody pruned them.
//!
//! They are kept beside the index and not in it: the index is made anew whenever it is damaged, and
//! what people asked for must not be forgotten with it. Each path is a file of its own, so that two
//! processes that prune at once need no lock, and one that is killed leaves no half of a list.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use sha2::{Digest, Sha256};

/// Folder within the mirror.
const FOLDER: &str = "code-index-left-out";
/// Most paths that are left out, and bytes of one.
pub(super) const MOST: usize = 10_000;
const LONGEST: u64 = 16 * 1024;

/// The paths that are left out of the index of one mirror, files and folders.
#[derive(Debug, Clone)]
pub(super) struct LeftOut {
    folder: PathBuf,
    paths: Arc<RwLock<BTreeSet<String>>>,
}

impl LeftOut {
    /// Returns what is left out of the index of a mirror. What cannot be read leaves out nothing.
    pub(super) fn of(mirror: &Path) -> Self {
        let folder = mirror.join(FOLDER);
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten().take(MOST);
        let paths = entries.filter_map(|entry| {
            let is_small = entry
                .metadata()
                .is_ok_and(|found| found.is_file() && found.len() <= LONGEST);
            let path = is_small.then(|| fs::read_to_string(entry.path()).ok())??;
            // A file that was only half written has another name than its text asks for.
            (entry.file_name().to_str() == Some(&name(&path))).then_some(path)
        });
        Self {
            paths: Arc::new(RwLock::new(paths.collect())),
            folder,
        }
    }

    /// True for a path that is left out, or lies in a folder that is.
    pub(super) fn holds(&self, path: &str) -> bool {
        let paths = self.paths.read().unwrap_or_else(PoisonError::into_inner);
        !paths.is_empty() && with_folders(path).any(|part| paths.contains(part))
    }

    pub(super) fn count(&self) -> usize {
        self.paths.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Leaves a path out from now on.
    pub(super) fn add(&self, path: &str) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        fs::write(self.folder.join(name(path)), path)?;
        self.paths
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(path.to_owned());
        Ok(())
    }

    /// Leaves a path in again, with what lies in it and the folders that it lies in.
    pub(super) fn remove(&self, path: &str) -> io::Result<()> {
        let mut paths = self.paths.write().unwrap_or_else(PoisonError::into_inner);
        let is_within = |inner: &str, outer: &str| with_folders(inner).any(|part| part == outer);
        let removed: Vec<String> = paths
            .iter()
            .filter(|left_out| is_within(left_out, path) || is_within(path, left_out))
            .cloned()
            .collect();
        for path in removed {
            match fs::remove_file(self.folder.join(name(&path))) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => paths.remove(&path),
            };
        }
        Ok(())
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Returns a path and the folders that it lies in.
pub(super) fn with_folders(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at]).chain([path])
}

fn name(path: &str) -> String {
    format!("{:x}", Sha256::digest(path.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_known_to_the_next_process_until_it_is_taken_in() {
        let folder = tempfile::tempdir().unwrap();
        let left_out = LeftOut::of(folder.path());
        assert!(!left_out.holds("vendor/a.py"));
        left_out.add("vendor").unwrap();
        left_out.add("src/made.py").unwrap();
        left_out.add("src/made.py").unwrap();
        // Half a write of another process.
        fs::write(left_out.folder().join("0123"), "src").unwrap();
        let next = LeftOut::of(folder.path());
        assert_eq!(next.count(), 2);
        assert!(next.holds("vendor/deep/a.py") && next.holds("src/made.py"));
        assert!(!next.holds("vendored.py") && !next.holds("src/other.py"));
        // One file of a folder that was left out brings the folder back: no list has exceptions.
        next.remove("vendor/deep/a.py").unwrap();
        next.remove("src").unwrap();
        assert_eq!(LeftOut::of(folder.path()).count(), 0);
        assert_eq!(next.count(), 0);
    }
}
