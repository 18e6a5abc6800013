//! Lists the names in a folder, sorted and bounded: level by level, so that one deep folder does
//! not hide its neighbours.

use cap_std::fs::Dir;
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

/// Most names of one folder that are read, whatever is asked for: reading more takes memory.
const MOST_NAMES: usize = 50_000;

/// How deep a listing goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    ThisFolder,
    EveryFolder,
}

/// Returns the paths beneath `folder`, folders with a slash and symlinks with `@` at the end, at
/// most `max_items`, and says if any are missing. Leaves out `.git`, and follows no symlink.
pub(super) fn list(folder: Dir, depth: Depth, max_items: usize) -> io::Result<String> {
    let mut items = Vec::new();
    let mut is_cut = false;
    let mut waiting = VecDeque::from([(PathBuf::new(), folder)]);
    while let Some((path, folder)) = waiting.pop_front() {
        let mut entries = Vec::new();
        for entry in folder.entries()?.take(MOST_NAMES) {
            entries.push(entry?);
        }
        is_cut |= entries.len() == MOST_NAMES;
        entries.retain(|entry| entry.file_name() != ".git");
        entries.sort_by_key(cap_std::fs::DirEntry::file_name);
        for entry in entries {
            let path = path.join(entry.file_name());
            let kind = entry.file_type()?;
            if items.len() == max_items {
                is_cut = true;
                break;
            }
            items.push(shown(&path, kind));
            if kind.is_dir() && depth == Depth::EveryFolder {
                // A folder that has just gone, or may not be read, is still listed.
                waiting.extend(entry.open_dir().ok().map(|folder| (path, folder)));
            }
        }
        if is_cut {
            break;
        }
    }
    items.sort();
    if is_cut {
        items.push(format!(
            "[cut after {} items; list a folder of these, or raise max_items]",
            items.len()
        ));
    }
    if items.is_empty() {
        items.push("[empty folder]".to_owned());
    }
    Ok(items.join("\n"))
}

fn shown(path: &std::path::Path, kind: cap_std::fs::FileType) -> String {
    let mark = match kind {
        kind if kind.is_dir() => "/",
        kind if kind.is_symlink() => "@",
        _ => "",
    };
    // One line for each: a name may hold anything but a slash.
    let name = path.to_string_lossy().replace(char::is_control, "\u{fffd}");
    format!("{name}{mark}")
}
