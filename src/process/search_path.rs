//! Looks for a program in the folders of a search path. Starts nothing.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Mode bits of which one lets somebody start a file.
const EXECUTABLE: u32 = 0o111;

/// Returns the file in the first of `folders` that holds a program of this name.
pub fn found_in(folders: impl Iterator<Item = PathBuf>, name: &str) -> Option<PathBuf> {
    folders.map(|folder| folder.join(name)).find(|file| is_program(file))
}

/// Tells whether there is a file of this path that somebody may start.
pub fn is_program(file: &Path) -> bool {
    let found = std::fs::metadata(file);
    found.is_ok_and(|found| found.is_file() && found.permissions().mode() & EXECUTABLE != 0)
}
