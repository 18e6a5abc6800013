//! Files and folders that need not be there: another process may have removed them.

use std::fs::DirEntry;
use std::io;
use std::path::Path;

/// Returns what is in a folder; nothing if there is none. Blocks.
pub(in crate::repository) fn entries(folder: &Path) -> io::Result<Vec<DirEntry>> {
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Takes it for success that there was nothing to remove.
pub(in crate::repository) fn unless_missing(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
