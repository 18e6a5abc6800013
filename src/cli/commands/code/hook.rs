//! The git hook that marks a repository as changed. It only makes a file, so that a commit is never
//! slower or refused because of it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::index::MARK;

const NAMES: [&str; 3] = ["post-commit", "post-merge", "post-checkout"];
/// Line by which a hook of this program is known.
const OURS: &str = "# Made by `coding-agent index install-hook`.";

/// Installs the hook in the repository of a folder. A hook of somebody else's is not touched.
pub(super) fn install(root: &Path) -> Result<String, String> {
    let git = root.join(".git");
    if !git.is_dir() {
        return Err(format!(
            "{} is not the top of a git repository; name it with --root",
            root.display()
        ));
    }
    let folder = git.join("hooks");
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    fs::create_dir_all(&folder).map_err(failed)?;
    for name in NAMES {
        let file = folder.join(name);
        if fs::read_to_string(&file).is_ok_and(|text| !text.contains(OURS)) {
            return Err(format!(
                "{} is there already and is not of this program; add this line to it: : > \"$(git rev-parse --git-dir)/{MARK}\"",
                file.display()
            ));
        }
    }
    for name in NAMES {
        let file = folder.join(name);
        let text = format!("#!/bin/sh\n{OURS}\n: > \"$(git rev-parse --git-dir)/{MARK}\"\nexit 0\n");
        fs::write(&file, text).map_err(failed)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).map_err(failed)?;
    }
    Ok(format!(
        "{} marks what changed; the next search brings the index up to date",
        folder.display()
    ))
}

pub(super) fn is_installed(git: &Path) -> bool {
    let hook = git.join("hooks").join(NAMES[0]);
    fs::read_to_string(hook).is_ok_and(|text| text.contains(OURS))
}
