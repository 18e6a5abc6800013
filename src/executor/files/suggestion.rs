//! Suggestions in place of a path that does not exist: a file of the same name elsewhere, one with
//! a similar name, or the content of the deepest folder that exists.

use cap_std::fs::Dir;
use std::collections::VecDeque;
use std::path::{Component, Path, PathBuf};

use crate::executor::text::shown_path;
use crate::spelling::likeness;

/// Most entries that are looked at.
const MOST_LOOKED_AT: usize = 5_000;
/// Most paths that are named.
const MOST_NAMED: usize = 3;
/// Most names of a folder that are listed.
const MOST_LISTED: usize = 20;
/// Least likeness of a name that may have been meant.
const LIKENESS: f64 = 0.7;

/// Returns what exists beneath `root` instead of `path`, as the end of a sentence.
pub(super) fn instead_of(root: &Dir, path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
    let mut same = Vec::new();
    let mut alike: Option<(f64, String)> = None;
    visit(root, |entry| {
        let other = entry.file_name().unwrap_or_default().to_string_lossy().to_lowercase();
        if other == name {
            same.push(shown_path(entry));
        } else {
            let likeness = likeness(&name, &other);
            let best = alike.as_ref().map_or(LIKENESS, |(most, _)| *most);
            if likeness > best {
                alike = Some((likeness, shown_path(entry)));
            }
        }
    });
    if !same.is_empty() {
        same.truncate(MOST_NAMED);
        return format!("there is {}", same.join(", "));
    }
    if let Some((_, alike)) = alike {
        return format!("did you mean {alike}?");
    }
    existing_folder(root, path)
}

/// Lists the deepest folder of `path` that exists.
fn existing_folder(root: &Dir, path: &Path) -> String {
    let mut folder = PathBuf::from(".");
    for part in path.components().filter(|part| matches!(part, Component::Normal(_))) {
        let next = folder.join(part);
        if !root.metadata(&next).is_ok_and(|metadata| metadata.is_dir()) {
            break;
        }
        folder = next;
    }
    let Ok(entries) = root.read_dir(&folder) else {
        return "look with list_files".to_owned();
    };
    let mut names: Vec<String> = entries
        .flatten()
        .filter(|entry| entry.file_name() != ".git")
        .map(|entry| {
            let mark = if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                "/"
            } else {
                ""
            };
            format!("{}{mark}", shown_path(Path::new(&entry.file_name())))
        })
        .collect();
    names.sort();
    if names.len() > MOST_LISTED {
        names.truncate(MOST_LISTED);
        names.push("...".to_owned());
    }
    let whose = match folder.strip_prefix(".") {
        Ok(folder) if !folder.as_os_str().is_empty() => shown_path(folder),
        _ => "the project".to_owned(),
    };
    if names.is_empty() {
        return format!("{whose} is empty");
    }
    format!("{whose} has {}", names.join(", "))
}

/// Calls `look` with each path beneath `root`, level by level, up to a maximum number.
fn visit(root: &Dir, mut look: impl FnMut(&Path)) {
    // Opened when their turn comes: there may be more of them than files may be open.
    let mut waiting = VecDeque::from([PathBuf::new()]);
    let mut seen = 0;
    while let Some(path) = waiting.pop_front() {
        let Ok(entries) = root.read_dir(Path::new(".").join(&path)) else {
            continue;
        };
        for entry in entries.flatten() {
            seen += 1;
            if seen > MOST_LOOKED_AT {
                return;
            }
            let name = entry.file_name();
            if name == ".git" || name == "node_modules" || name == ".venv" {
                continue;
            }
            let path = path.join(&name);
            look(&path);
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push_back(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use std::fs;

    #[test]
    fn something_that_exists_is_named() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["README.md", "src/app/views.py", "tests/test_views.py"] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let root = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        for (path, expected) in [
            ("app/views.py", "there is src/app/views.py"),
            ("src/app/view.py", "did you mean src/app/views.py?"),
            ("src/models.rs", "src has app/"),
            ("nowhere/else", "the project has README.md, src/, tests/"),
            ("src/apps", "did you mean src/app?"),
        ] {
            assert_eq!(instead_of(&root, Path::new(path)), expected, "{path}");
        }
    }
}
