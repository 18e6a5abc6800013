//! Lists the names in a folder, sorted and bounded: level by level, so that one deep folder does
//! not hide its neighbours.

use cap_std::fs::{Dir, FileType};
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

use crate::executor::text::shown_path;
use crate::plain::counted;

/// Most names of one folder that are read, whatever is asked for: reading more takes memory.
const MOST_NAMES: usize = 50_000;
/// Most names of all folders that are read where only some files are listed.
const MOST_NAMES_IN_ALL: usize = 200_000;

/// The parameters of a listing.
pub(super) struct Listing {
    pub(super) is_recursive: bool,
    /// Ends of the names of files, in lower case; empty for all files.
    pub(super) endings: Vec<String>,
    pub(super) max_items: usize,
}

/// Returns extensions as endings of names: `py`, `.PY` and `*.py` all mean `.py`.
pub(super) fn endings(extensions: &[String]) -> Vec<String> {
    let ending = |extension: &String| {
        let extension = extension.trim_start_matches('*').trim_start_matches('.');
        format!(".{}", extension.to_lowercase())
    };
    extensions.iter().map(ending).collect()
}

impl Listing {
    /// Returns the paths beneath `folder`: files with a tab and their size, folders with a slash
    /// and symlinks with `@` at the end; and says if any are missing. Leaves out `.git`, and
    /// follows no symlink.
    pub(super) fn of(&self, folder: Dir) -> io::Result<String> {
        let mut items = Vec::new();
        let (mut is_cut, mut lacks_some) = (false, false);
        let mut names = 0;
        let look_into = move |path: &Path| folder.read_dir(Path::new(".").join(path));
        // Opened when their turn comes: there may be more of them than files may be open.
        let mut waiting = VecDeque::from([PathBuf::new()]);
        while let Some(path) = waiting.pop_front() {
            let found = match look_into(&path) {
                Ok(found) => found,
                Err(error) if path.as_os_str().is_empty() => return Err(error),
                Err(error) => {
                    lacks_some |= !is_gone_or_closed(&error);
                    continue;
                }
            };
            let mut entries = Vec::new();
            for entry in found.take(MOST_NAMES) {
                entries.push(entry?);
            }
            names += entries.len();
            is_cut |= entries.len() == MOST_NAMES || names > MOST_NAMES_IN_ALL;
            entries.retain(|entry| entry.file_name() != ".git");
            entries.sort_by_key(cap_std::fs::DirEntry::file_name);
            for entry in entries {
                let path = path.join(entry.file_name());
                let kind = entry.file_type()?;
                if self.shows(&path, kind) {
                    if items.len() == self.max_items {
                        is_cut = true;
                        break;
                    }
                    let size = kind.is_file().then(|| entry.metadata().ok()).flatten();
                    items.push(shown(&path, kind, size.map(|metadata| metadata.len())));
                }
                if kind.is_dir() && self.is_recursive {
                    waiting.push_back(path);
                }
            }
            if is_cut {
                break;
            }
        }
        items.sort();
        if is_cut || lacks_some {
            items.push(format!(
                "[cut after {}; list a folder of these, or raise max_items]",
                counted(items.len(), "item")
            ));
        }
        if items.is_empty() {
            let nothing = if self.endings.is_empty() {
                "[empty folder]"
            } else {
                "[no such files]"
            };
            items.push(nothing.to_owned());
        }
        Ok(items.join("\n"))
    }

    /// Tells whether an entry is shown. If only some files are wanted, folders are shown only where
    /// they can be listed next.
    fn shows(&self, path: &Path, kind: FileType) -> bool {
        if self.endings.is_empty() {
            return true;
        }
        if kind.is_dir() {
            return !self.is_recursive;
        }
        let name = path.to_string_lossy().to_lowercase();
        self.endings.iter().any(|ending| name.ends_with(ending.as_str()))
    }
}

/// Tells whether a folder has just gone, or may not be read: it is listed, and nothing in it could
/// be.
fn is_gone_or_closed(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied
    )
}

fn shown(path: &Path, kind: FileType, size: Option<u64>) -> String {
    let mark = match kind {
        kind if kind.is_dir() => "/".to_owned(),
        kind if kind.is_symlink() => "@".to_owned(),
        _ => size.map_or_else(String::new, |size| format!("\t{size}")),
    };
    // One line for each: a name may hold anything but a slash.
    let name = shown_path(path);
    format!("{name}{mark}")
}
