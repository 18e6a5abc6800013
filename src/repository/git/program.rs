//! Looks up the program git in the worker's search path.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::process::search_path;

/// Returns the file of git that the worker's search path names, or its name where it names none.
///
/// With a name alone and an environment of its own for the command, the standard library forks this
/// process, and the page tables of a service are copied for each command. With a path it does not.
#[expect(clippy::disallowed_methods, reason = "git is looked up in the worker's PATH")]
pub(super) fn program() -> PathBuf {
    found_in(&std::env::var_os("PATH").unwrap_or_default())
}

/// Returns the first executable file named git in the folders of a search path, or the name alone.
/// Relative folders do not count: git is started in another folder than this process.
fn found_in(folders: &OsStr) -> PathBuf {
    let folders = std::env::split_paths(folders).filter(|folder| folder.is_absolute());
    search_path::found_in(folders, "git").unwrap_or_else(|| PathBuf::from("git"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_first_file_that_can_be_run_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let [empty, a_folder, no_program, first, second] =
            ["1", "2", "3", "4", "5"].map(|name| folder.path().join(name));
        std::fs::create_dir(&empty).unwrap();
        std::fs::create_dir_all(a_folder.join("git")).unwrap();
        for (place, mode) in [(&no_program, 0o644), (&first, 0o755), (&second, 0o755)] {
            std::fs::create_dir(place).unwrap();
            let file = place.join("git");
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        }
        let relative = PathBuf::from("bin");
        let all = [&relative, &empty, &a_folder, &no_program, &first, &second];
        assert_eq!(found_in(&std::env::join_paths(all).unwrap()), first.join("git"));
    }

    #[test]
    fn without_one_only_the_name_is_left() {
        assert_eq!(found_in(OsStr::new("")), PathBuf::from("git"));
        assert_eq!(found_in(OsStr::new("/nonexistent:bin")), PathBuf::from("git"));
    }
}
